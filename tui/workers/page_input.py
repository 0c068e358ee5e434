"""What a browser's page sends: see `terminal_input`. Loaded where there is a page."""

from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver, _ExitInput

from tui.workers.terminal_input import Keyboard


class PageDriver(WebDriver):
    """Reads from the server of a page."""

    def run_input_thread(self) -> None:
        """Read until it is over."""
        keyboard, stream = Keyboard(self), ByteStream()
        try:
            for sent in self._input_reader:
                for kind, packet in stream.feed(sent) if sent else ():
                    if kind == "D":
                        keyboard.feed(packet)
                    else:
                        self._on_meta(kind, packet)
                keyboard.tick()
        except _ExitInput:
            pass  # the page was closed
        except RuntimeError:
            # Textual does not wait for this thread: the last input has no receiver.
            if not self.exit_event.is_set():
                raise
        finally:
            self._input_reader.close()
