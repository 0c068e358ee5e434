// What is shown, as the part of the address behind "#": so that back, forward and reload work.

/** The page and its values: `#/document?path=…`. */
export function read() {
  const [page, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { page: page || "search", values: new URLSearchParams(query || "") };
}

export function to(page, values = {}) {
  const query = new URLSearchParams();
  for (const [name, given] of Object.entries(values)) {
    for (const one of Array.isArray(given) ? given : [given]) {
      if (one !== "" && one !== null && one !== undefined) query.append(name, one);
    }
  }
  const text = query.toString();
  return `#/${page === "search" ? "" : page}${text ? `?${text}` : ""}`;
}

export function go(page, values) {
  location.hash = to(page, values);
}
