"""What every view of the page must hold for whoever uses it, as JavaScript that says what does not.

The rules are those of WCAG 2.2 that a program can check; the words of a failure name the element.
"""

CHECKS = r"""
(() => {
  const wrong = [];
  const tell = (what, one) => wrong.push(`${what}: ${one.outerHTML.slice(0, 160)}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const unseen = ".unseen, .skip, dialog:not([open])";
  const isSeen = (one) => one.checkVisibility() && !one.closest(unseen);

  const levels = all("main :is(h1,h2,h3,h4,h5,h6)").filter((one) => one.checkVisibility())
    .map((one) => [one, Number(one.getAttribute("aria-level") || one.tagName[1])]);
  if (levels.filter(([, level]) => level === 1).length !== 1) wrong.push("not one h1");
  levels.forEach(([one, level], at) => {
    if (level > (at ? levels[at - 1][1] : 0) + 1) tell("a level of headings is left out", one);
  });

  const ids = all("[id]").map((one) => one.id);
  const twice = ids.filter((id, at) => ids.indexOf(id) < at);
  for (const id of twice) wrong.push(`id twice: ${id}`);
  for (const name of ["aria-labelledby", "aria-describedby", "for"]) {
    for (const one of all(`[${name}]`)) {
      const named = one.getAttribute(name).split(" ");
      for (const id of named) if (!ids.includes(id)) tell(`no ${id}`, one);
    }
  }
  if (!document.documentElement.lang || !document.title) wrong.push("no language or title");
  if (all("main").length !== 1) wrong.push("not one main");
  for (const one of all(".hits, .documents, .finding ul")) {
    if ([...one.children].some((child) => child.tagName !== "LI")) tell("no list", one);
  }
  for (const one of all("img, [role=img]")) {
    if (!one.getAttribute("alt")) tell("no words for a picture", one);
  }
  if (document.documentElement.scrollWidth > innerWidth) {
    wrong.push(`wider than the window: ${document.documentElement.scrollWidth} > ${innerWidth}`);
  }
  for (const one of all("button, .button, select, input")) {
    if (!isSeen(one)) continue;
    const { width, height } = (one.closest("label") || one).getBoundingClientRect();
    if (width < 24 || height < 24) tell(`small to hit, ${width} x ${height}`, one);
  }

  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([red, green, blue]) => [red, green, blue]
    .map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return colour("Canvas");
  };
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const one = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || !isSeen(one) || one.closest("noscript, script")) continue;
    const [ink, paper] = [light(colour(getComputedStyle(one).color)), light(ground(one))];
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) tell(`contrast ${ratio.toFixed(2)}`, one);
    for (let at = one; at; at = at.parentElement) {
      if (Number(getComputedStyle(at).opacity) < 1) tell("see-through", at);
    }
  }
  return wrong;
})()
"""

FOCUS = r"""
(() => {
  const one = document.activeElement;
  if (!one || one === document.body) return "";
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  const { top, bottom, left, right } = one.getBoundingClientRect();
  const isThere = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
  const isShown = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  return isThere && isShown ? "" : `${isThere} ${outlineStyle} ${one.outerHTML.slice(0, 120)}`;
})()
"""
