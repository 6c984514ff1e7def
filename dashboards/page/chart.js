// The three drawings of a check: rate over time, the interval of a window, and the
// detector's evidence. No estimate is drawn without its interval.
import { svg, count, date, interval, magnitude, minute, percent } from "./words.js";

const left = 44, right = 8, top = 8;
const high = { rate: 176, covered: 30, judged: 30, gap: 16, labels: 20 };
const poor = (p) => (p.coverage != null && p.coverage < .5) || (p.missing_share != null && p.missing_share > .2);

// words of one step, for pointer, keys and screen readers.
export function stepWords(p) {
  const when = `${date(p.from)} to ${minute(p.to)}`;
  if (p.pass_rate.value == null) {
    const selected = p.missing ? `, ${count(p.missing)} selected without a usable answer` : "";
    return `${when}: nothing judged${selected}`;
  }
  let text = `${when}: ${percent(p.pass_rate.value)} pass (${interval(p.pass_rate)}), ${count(p.n)} judged`;
  if (p.missing_share > 0) text += `, ${percent(p.missing_share)} missing`;
  if (p.low_confidence) text += ", too few to rely on";
  if (poor(p)) text += ", so much is missing that the rate may mislead";
  return text;
}

function chartWords(name, points, target) {
  const judged = points.filter((p) => p.pass_rate.value != null);
  if (!judged.length) return `${name}: no judged interactions in the last 24 hours.`;
  const last = judged[judged.length - 1];
  const firm = judged.filter((p) => !p.low_confidence);
  let text = `${name}, pass rate over time. Latest, ${stepWords(last)}.`;
  if (firm.length > 1) {
    const low = firm.reduce((a, b) => (b.pass_rate.value < a.pass_rate.value ? b : a));
    const best = firm.reduce((a, b) => (b.pass_rate.value > a.pass_rate.value ? b : a));
    text += ` Lowest ${percent(low.pass_rate.value)} at ${date(low.from)}, highest ${percent(best.pass_rate.value)} at ${date(best.from)}.`;
  }
  if (target != null) text += ` Target ${percent(target)}.`;
  return text + " Left and right arrow keys read the steps.";
}

// runs are the stretches of neighbours that have a rate, cut where confidence changes;
// the point at a cut belongs to both, so that the band has no hole.
function runs(points) {
  const found = [];
  let run = null;
  points.forEach((p, i) => {
    if (p.pass_rate.value == null) { run = null; return; }
    if (!run) found.push(run = { thin: p.low_confidence, at: [i] });
    else if (run.thin !== p.low_confidence) {
      const last = run.at[run.at.length - 1];
      // A thin neighbour makes the stretch between them thin.
      if (p.low_confidence) { found.push(run = { thin: true, at: [last, i] }); }
      else { run.at.push(i); found.push(run = { thin: false, at: [i] }); }
    } else run.at.push(i);
  });
  return found;
}

function scaleOf(points, target, zoomed) {
  if (!zoomed) return [0, 1];
  const values = points.filter((p) => p.pass_rate.value != null && !p.low_confidence).flatMap((p) => [p.pass_rate.lower, p.pass_rate.upper]);
  if (target != null) values.push(target);
  if (!values.length) return [0, 1];
  const low = Math.max(0, Math.floor(Math.min(...values) * 20 - .2) / 20), up = Math.min(1, Math.ceil(Math.max(...values) * 20 + .2) / 20);
  return up - low < .1 ? [Math.max(0, up - .1), up] : [low, up];
}

export function rateChart({ name, points, target, zoomed, alarms, width }) {
  const height = top + high.rate + 2 * high.gap + high.covered + high.judged + high.labels;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: 0, "aria-label": chartWords(name, points, target) });
  if (!points.length) return { root, steps: [] };
  const begin = Date.parse(points[0].from), end = Date.parse(points[points.length - 1].to);
  const x = (t) => left + (width - left - right) * (t - begin) / (end - begin);
  const [low, up] = scaleOf(points, target, zoomed);
  const y = (v) => top + high.rate * (1 - (Math.min(up, Math.max(low, v)) - low) / (up - low));
  const bottom = top + high.rate;
  const steps = points.map((p) => ({ p, a: x(Date.parse(p.from)), b: x(Date.parse(p.to)), mid: x((Date.parse(p.from) + Date.parse(p.to)) / 2) }));

  for (const a of alarms) {
    const from = Math.max(begin, Date.parse(a.opened_at)), to = a.closed_at ? Date.parse(a.closed_at) : end;
    if (to <= begin || from >= end) continue;
    root.append(svg("rect", { class: "alarm", x: x(from), y: top, width: Math.max(1, x(Math.min(to, end)) - x(from)), height: high.rate }, svg("title", {}, a.summary)));
    if (Date.parse(a.opened_at) >= begin) root.append(svg("line", { class: "alarm-edge", x1: x(from), x2: x(from), y1: top, y2: bottom }));
  }
  axes(root, { width, x, y, low, up, begin, end, bottom });
  for (const s of steps) if (poor(s.p)) root.append(svg("rect", { fill: "url(#hatch)", x: s.a, y: top, width: s.b - s.a, height: high.rate }));
  if (target != null && target >= low && target <= up) {
    root.append(svg("line", { class: "target", x1: left, x2: width - right, y1: y(target), y2: y(target) }));
  }
  for (const run of runs(points)) drawRun(root, run, steps, y);
  for (const s of steps) {
    const r = s.p.pass_rate;
    if (r.value != null) root.append(svg("circle", { class: s.p.low_confidence ? "point hollow" : "point", cx: s.mid, cy: y(r.value), r: steps.length > 60 ? 1.8 : 2.6 }));
  }
  below(root, steps, bottom, width);
  return { root, steps };
}

function axes(root, { width, x, y, low, up, begin, end, bottom }) {
  const step = up - low > .5 ? .25 : up - low > .2 ? .1 : up - low > .1 ? .05 : .025;
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= up + 1e-9; v += step) {
    root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }));
    root.append(svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, percent(v, step < .05 ? 1 : 0)));
  }
  const hour = 3600e3, hours = (end - begin) / hour;
  const every = [1, 2, 3, 4, 6, 12, 24].find((h) => hours / h * 58 <= width - left - right) ?? 24;
  const foot = bottom + 2 * high.gap + high.covered + high.judged;
  for (let t = Math.ceil(begin / (every * hour)) * every * hour; t <= end; t += every * hour) {
    const at = x(t);
    root.append(svg("line", { class: "grid", x1: at, x2: at, y1: top, y2: foot }));
    const anchor = at > width - 24 ? "end" : at < left + 10 ? "start" : "middle";
    root.append(svg("text", { x: at, y: foot + 14, "text-anchor": anchor }, minute(new Date(t))));
  }
}

function drawRun(root, run, steps, y) {
  const mine = run.at.map((i) => steps[i]);
  const thin = run.thin ? " thin" : "";
  if (mine.length === 1) {
    const { p, a, b } = mine[0];
    root.append(svg("rect", { class: `band${thin}`, x: a, y: y(p.pass_rate.upper), width: b - a, height: Math.max(1, y(p.pass_rate.lower) - y(p.pass_rate.upper)) }));
    return;
  }
  const over = mine.map((s) => `${s.mid.toFixed(1)},${y(s.p.pass_rate.upper).toFixed(1)}`);
  const under = mine.map((s) => `${s.mid.toFixed(1)},${y(s.p.pass_rate.lower).toFixed(1)}`).reverse();
  root.append(svg("polygon", { class: `band${thin}`, points: [...over, ...under].join(" ") }));
  root.append(svg("polyline", { class: `line${thin}`, points: mine.map((s) => `${s.mid.toFixed(1)},${y(s.p.pass_rate.value).toFixed(1)}`).join(" ") }));
}

// below draws coverage with the missing share on it, and how many were judged, on the
// rate's time axis.
function below(root, steps, bottom, width) {
  const covered = bottom + high.gap, judged = covered + high.covered + high.gap;
  const most = Math.max(1, ...steps.map((s) => s.p.n));
  root.append(svg("text", { x: left - 6, y: covered + 9, "text-anchor": "end" }, "100%"));
  root.append(svg("text", { x: left - 6, y: judged + 9, "text-anchor": "end" }, count(most)));
  for (const at of [covered, judged]) {
    const height = at === covered ? high.covered : high.judged;
    root.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: at + height, y2: at + height }));
  }
  for (const { p, a, b } of steps) {
    const bar = { x: a + .5, width: Math.max(1, b - a - 1) };
    if (p.coverage != null) {
      const h = high.covered * Math.min(1, p.coverage);
      root.append(svg("rect", { class: "covered", ...bar, y: covered + high.covered - h, height: h }));
    }
    if (p.missing_share > 0) root.append(svg("rect", { class: "missing", ...bar, y: covered, height: Math.max(1.5, high.covered * p.missing_share) }));
    if (p.n > 0) {
      const h = Math.max(1, high.judged * p.n / most);
      root.append(svg("rect", { class: "count", ...bar, y: judged + high.judged - h, height: h }));
    }
  }
}

// reader lets pointer and arrow keys say what a step holds.
export function reader({ root, steps }, say) {
  const line = svg("line", { class: "cursor", y1: top, y2: top + high.rate, visibility: "hidden" });
  root.append(line);
  let at = steps.length - 1;
  const show = (i) => {
    if (i < 0 || i >= steps.length) return;
    at = i;
    line.setAttribute("x1", steps[i].mid);
    line.setAttribute("x2", steps[i].mid);
    line.setAttribute("visibility", "visible");
    say(stepWords(steps[i].p));
  };
  const hide = () => { line.setAttribute("visibility", "hidden"); say(""); };
  root.addEventListener("pointermove", (e) => {
    const box = root.getBoundingClientRect();
    const px = (e.clientX - box.left) * root.viewBox.baseVal.width / box.width;
    show(steps.findIndex((s) => px >= s.a && px < s.b));
  });
  root.addEventListener("pointerleave", hide);
  root.addEventListener("blur", hide);
  root.addEventListener("keydown", (e) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (move === undefined) return;
    e.preventDefault();
    show(line.getAttribute("visibility") === "hidden" ? steps.length - 1 : Math.min(steps.length - 1, Math.max(0, at + move)));
  });
}

// intervalBar is a window's interval on a line from 0 to 100%.
export function intervalBar(rate, target, low) {
  const width = 150, height = 16, x = (v) => 3 + (width - 6) * v;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", height, preserveAspectRatio: "none", "aria-hidden": "true" });
  root.append(svg("line", { class: "grid", x1: x(0), x2: x(1), y1: 8, y2: 8 }));
  if (rate.value != null) {
    root.append(svg("rect", { class: low ? "band thin" : "band", x: x(rate.lower), y: 3, width: Math.max(2, x(rate.upper) - x(rate.lower)), height: 10 }));
    root.append(svg("rect", { class: "point", x: x(rate.value) - 1.5, y: 2, width: 3, height: 12 }));
  }
  if (target != null) root.append(svg("line", { class: "target", x1: x(target), x2: x(target), y1: 0, y2: height }));
  return root;
}

// gauge is the detector's evidence on a logarithmic axis that ends a power above its
// limit.
export function gauge(d, width) {
  const height = 40, most = Math.ceil(Math.log10(Math.max(10, d.threshold))) + 1;
  const x = (v) => 4 + (width - 8) * Math.min(most, Math.max(0, Math.log10(Math.max(1, v)))) / most;
  const over = d.e_value >= d.threshold || d.state === "alarm";
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": `Evidence of a fall: ${magnitude(d.e_value)}, the limit is ${magnitude(d.threshold)}; logarithmic scale.` });
  root.append(svg("rect", { class: "track", x: x(1), y: 8, width: x(10 ** most) - x(1), height: 10, rx: 3 }));
  root.append(svg("rect", { class: over ? "evidence over" : "evidence", x: x(1), y: 8, width: Math.max(2, x(d.e_value) - x(1)), height: 10, rx: 3 }));
  const every = Math.max(1, Math.ceil(most / Math.max(2, width / 70)));
  for (let power = 0; power <= most; power += every) {
    root.append(svg("text", { x: x(10 ** power), y: 33, "text-anchor": power === 0 ? "start" : power + every > most ? "end" : "middle" }, power < 4 ? String(10 ** power) : `1e${power}`));
  }
  root.append(svg("line", { class: "limit", x1: x(d.threshold), x2: x(d.threshold), y1: 3, y2: 23 }));
  return root;
}
