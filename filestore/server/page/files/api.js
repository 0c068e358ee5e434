// Asks the server. The token comes from the address once, and is sent in a header only.

const KEY = "filestore-token";
let kept = "";

export class Refused extends Error {
  constructor(status, body) {
    super(body.error || `the server answers ${status}`);
    this.status = status;
    this.detail = body.detail || "";
    this.remedy = body.remedy || "";
  }
}

export function token() {
  try {
    return sessionStorage.getItem(KEY) || kept;
  } catch {
    return kept;
  }
}

export function keepToken(value) {
  kept = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch { /* kept for this page alone */ }
}

/** Take the token out of the address bar, before anything else looks at it. */
export function takeToken() {
  const found = /^#token=(.*)$/s.exec(location.hash);
  if (!found) return;
  let value = found[1];
  try {
    value = decodeURIComponent(value);
  } catch { /* as it stands */ }
  keepToken(value);
  history.replaceState(null, "", `${location.pathname}${location.search}#/`);
}

function headers(more = {}) {
  const given = token();
  // A header takes no other signs; what has them is no token of a server.
  return /^[\x21-\x7e]+$/.test(given) ? { ...more, Authorization: `Bearer ${given}` } : more;
}

async function fetched(path, options) {
  let answer;
  try {
    answer = await fetch(path, { ...options, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { error: "the server does not answer", remedy: "see whether it still runs, then try again" });
  }
  if (answer.ok) return answer;
  let body = {};
  try {
    body = await answer.json();
  } catch { /* not from us */ }
  throw new Refused(answer.status, body);
}

/** An operation of the server, asked of the store that is chosen. */
export async function ask(name, given, signal) {
  const body = JSON.stringify(chosen ? { store: chosen, ...given } : given);
  const answer = await fetched(name, {
    method: "POST", body, signal, headers: headers({ "Content-Type": "application/json" }),
  });
  const told = await answer.json();
  if (typeof told.generation === "number") newest = told.generation;
  return told;
}

/** The generation of the index that the newest answer was of; 0 before the first. */
let newest = 0;
export const generation = () => newest;

export async function storeNames() {
  const answer = await fetched("stores", { headers: headers() });
  return (await answer.json()).stores.map((one) => one.name);
}

/** What happens to the store, event by event, until the signal ends it. */
export async function* events(signal) {
  const path = chosen ? `events?store=${encodeURIComponent(chosen)}` : "events";
  const answer = await fetched(path, { signal, headers: headers({ Accept: "text/event-stream" }) });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop().slice(-1_000_000);
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      try {
        yield JSON.parse(line.slice(5));
      } catch { /* cut off */ }
    }
  }
}

let chosen = "";
export const store = () => chosen;
export function chooseStore(name) {
  chosen = name;
  newest = 0;
}
