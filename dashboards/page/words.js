// Numbers and times in words, and the little that is needed of the DOM.
export const byId = (id) => document.getElementById(id);

export function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") e.className = value;
    else if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value != null) e.setAttribute(name, value);
  }
  e.append(...children.filter((c) => c != null));
  return e;
}

export function svg(tag, attributes = {}, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

// fill keeps one child per key, in order, so that focus and choices survive a redraw.
export function fill(parent, list, key, update, make) {
  const old = new Map([...parent.children].filter((c) => c.dataset.key != null).map((c) => [c.dataset.key, c]));
  let place = null;
  for (const one of list) {
    const k = key(one);
    let child = old.get(k);
    old.delete(k);
    if (!child) {
      child = make(one);
      child.dataset.key = k;
    }
    const next = place ? place.nextSibling : parent.firstChild;
    if (child !== next) parent.insertBefore(child, next);
    update(child, one);
    place = child;
  }
  for (const gone of old.values()) gone.remove();
}

export const known = (t) => Boolean(t) && !t.startsWith("0001-");

const two = (n) => String(n).padStart(2, "0");
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const at = (t) => (t instanceof Date ? t : new Date(t));
export const minute = (t) => `${two(at(t).getUTCHours())}:${two(at(t).getUTCMinutes())}`;
export const clock = (t) => `${minute(t)}:${two(at(t).getUTCSeconds())}`;
export const date = (t) => `${months[at(t).getUTCMonth()]} ${at(t).getUTCDate()}, ${minute(t)}`;

export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}
export const ago = (seconds) => (seconds < 2 ? "just now" : `${duration(seconds)} ago`);
export const count = (n) => Math.round(n).toLocaleString("en");
export const percent = (v, digits = 1) => `${(100 * v).toFixed(digits)}%`;
export const money = (usd) => (usd < 1 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`);
export const interval = (r) => `${percent(r.lower)} to ${percent(r.upper)}`;

// evidence spans many powers of ten.
export function magnitude(v) {
  if (v < 1000) return v >= 100 || Number.isInteger(v) ? v.toFixed(0) : v.toPrecision(2);
  if (v < 1e6) return count(v);
  const power = Math.floor(Math.log10(v));
  return `${(v / 10 ** power).toFixed(1)}e${power}`;
}

export function sliceName(slice) {
  const names = Object.keys(slice).sort();
  return names.length ? names.map((n) => `${n}=${slice[n]}`).join(",") : "all";
}

const spans = { "5m": "5 minutes", "1h": "hour", "6h": "6 hours", "24h": "24 hours" };
export const span = (name) => spans[name] ?? name;
