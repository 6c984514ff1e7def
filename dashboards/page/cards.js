// Cards of checks and alarms. A card is made once and updated, so that a choice, the
// focus or an opened list is still there after a refresh.
import { gauge, intervalBar, rateChart, reader } from "./chart.js";
import { people } from "./people.js";
import { byId, count, date, el, fill, interval, known, magnitude, percent, sliceName, span } from "./words.js";

export function cards(checks, state, { chosen, redraw, choose }) {
  fill(byId("checks"), checks, (c) => c.name, (card, c) => update(card, c, state, chosen(c)), (c) => make(c, state, redraw, choose));
}

function make(check, state, redraw, choose) {
  const id = `check-${check.name}`;
  const zoom = el("button", { type: "button", "aria-pressed": "false", title: "Axis from the data instead of 0 to 100%", onclick: () => {
    if (!state.zoomed.delete(check.name)) state.zoomed.add(check.name);
    redraw();
  } }, "Zoom");
  const select = el("select", { onchange: (e) => choose(check, e.target.value) });
  const card = el("article", { class: "card check", "aria-labelledby": id },
    el("div", { class: "check-head" },
      el("h3", { id }, check.name), el("span", { class: "quiet about" }),
      el("span", { class: "grow" }),
      el("label", {}, el("span", { class: "quiet" }, "slice "), select), zoom),
    el("div", { class: "check-body" },
      el("div", {},
        el("div", { class: "rate" }, el("span", { class: "big" }), el("span", { class: "between" })),
        el("p", { class: "quiet counted" }), el("p", { class: "quiet bounds" }),
        el("table", { class: "windows" }, el("caption", { class: "hidden" }, "Pass rate by window"), el("tbody", {})),
        el("div", { class: "detector" }),
        el("div", { class: "detector people", hidden: "" })),
      el("div", { class: "chart" }, el("ul", { class: "legend" }), el("div", { class: "plot" }), el("p", { class: "readout", "aria-live": "polite" }))));
  card.parts = {
    about: card.querySelector(".about"), select, zoom, big: card.querySelector(".big"), between: card.querySelector(".between"),
    counted: card.querySelector(".counted"), bounds: card.querySelector(".bounds"), windows: card.querySelector("tbody"),
    detector: card.querySelector(".detector"), people: card.querySelector(".people"), legend: card.querySelector(".legend"), plot: card.querySelector(".plot"), readout: card.querySelector(".readout"),
  };
  return card;
}

// headline is the shortest window with enough behind it, so that the big number is as
// fresh as it can be believed.
function headline(windows) {
  return windows.find((w) => w.name !== "5m" && w.n > 0 && !w.low_confidence) ?? windows.find((w) => w.n > 0) ?? windows[windows.length - 1];
}

function update(card, check, state, slice) {
  const parts = card.parts, windows = slice.windows ?? [], main = headline(windows);
  set(parts.about, `${check.evaluator}, version ${check.version.slice(0, 8)}`);
  options(parts.select, check.slices ?? [], sliceName(slice.slice));
  parts.zoom.setAttribute("aria-pressed", state.zoomed.has(check.name));
  rate(parts, check, main);
  table(parts.windows, windows, main, check.target);
  detector(parts.detector, slice.detector, check, state.quality.snapshot);
  people(parts.people, slice, check);
  plot(card, check, state, slice);
}

function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function options(select, slices, chosenName) {
  const names = slices.map((s) => sliceName(s.slice));
  if ([...select.options].map((o) => o.value).join("\n") !== names.join("\n")) {
    select.replaceChildren(...names.map((n) => el("option", { value: n }, n)));
  }
  slices.forEach((s, i) => set(select.options[i], s.detector?.state === "alarm" ? `${names[i]} (alarm)` : names[i]));
  select.value = chosenName;
}

function rate(parts, check, w) {
  const r = w?.pass_rate;
  parts.big.dataset.low = Boolean(w?.low_confidence);
  parts.big.dataset.below = r?.value != null && check.target != null && r.upper < check.target;
  if (r?.value == null) {
    set(parts.big, "–");
    set(parts.between, "nothing judged in 24 hours");
    set(parts.counted, check.last_judged ? `last judged ${date(check.last_judged)}` : "");
    set(parts.bounds, "");
    return;
  }
  set(parts.big, percent(r.value));
  set(parts.between, `pass, between ${percent(r.lower)} and ${percent(r.upper)}`);
  const of = w.population_exact ? `of ${count(w.population)}` : `of about ${count(w.population)}`;
  const missing = w.missing_share > 0 ? `, ${percent(w.missing_share)} without an answer` : "";
  set(parts.counted, `${count(w.n)} judged ${of} in the last ${span(w.name)}${missing}` +
    (check.target != null ? `; target ${percent(check.target)}` : "") + (w.low_confidence ? "; too few to rely on" : ""));
  set(parts.bounds, w.missing_share > .02 && w.bounds ? `${percent(w.bounds.lower)} if all of the missing had failed, ${percent(w.bounds.upper)} if all had passed` : "");
}

function table(body, windows, main, target) {
  fill(body, windows, (w) => w.name, (row, w) => {
    row.setAttribute("aria-current", w === main);
    const [, bar, value, n] = row.children;
    bar.replaceChildren(intervalBar(w.pass_rate, target, w.low_confidence));
    set(value, w.pass_rate.value == null ? "–" : percent(w.pass_rate.value));
    value.title = w.pass_rate.value == null ? "nothing judged" : `95% interval ${interval(w.pass_rate)}`;
    set(n, `n ${count(w.n)}`);
  }, (w) => el("tr", {}, el("th", { scope: "row" }, w.name), el("td", { class: "bar" }), el("td", {}), el("td", { class: "quiet" })));
}

function detector(box, d, check, snapshot) {
  if (!d) {
    box.replaceChildren(el("p", { class: "quiet" }, "The drift detector has read nothing yet."));
    return;
  }
  const name = { off: "off", watching: "ok", alarm: "ALARM" }[d.state] ?? d.state;
  const head = el("div", { class: "row" }, el("span", {}, "Drift "), el("span", { class: "pill", "data-state": d.state }, name));
  if (d.state === "off") {
    box.replaceChildren(head, el("p", { class: "quiet" }, d.reason || ""));
    return;
  }
  const drawing = el("div", { class: "plain" }, gauge(d, Math.max(200, box.clientWidth || 300)));
  const words = [`Evidence of a fall ${magnitude(d.e_value)}, limit ${magnitude(d.threshold)}`, `${count(d.samples)} judged since the last reset`];
  if (d.tolerance > 0) words.push(`${percent(d.tolerance)} tolerated`);
  const notes = [];
  if (d.smallest_drop != null) notes.push(`A fall of ${percent(d.smallest_drop)} below the target would be found within 24 h.`);
  if (d.late_share > .01) notes.push(`${percent(d.late_share)} of the rows came after their minute was read; the detector misses those.`);
  if (known(d.read_until) && snapshot.clock === "wall") notes.push(`Read to ${date(d.read_until)}.`);
  box.replaceChildren(head, drawing, el("p", { class: "quiet" }, words.join("; ") + "."), el("p", { class: "quiet" }, notes.join(" ")));
}

function plot(card, check, state, slice) {
  const parts = card.parts, name = sliceName(slice.slice);
  const series = state.series.get(check.name);
  const points = series?.slice === name ? series.points : null;
  const width = Math.max(260, Math.floor(parts.plot.clientWidth || 600));
  const mine = (state.quality.snapshot.alarms ?? []).filter((a) => a.check === check.name && sliceName(a.slice ?? {}) === name);
  const key = [series?.of, name, width, state.zoomed.has(check.name), mine.map((a) => a.id + a.state).join()].join(" ");
  if (series?.failed) set(parts.readout, `The chart could not be read: ${series.failed}`);
  if (!points || card.drawn === key) return;
  card.drawn = key;
  const focused = parts.plot.contains(document.activeElement);
  const drawing = rateChart({ name: `${check.name}, ${name}`, points, target: check.target, zoomed: state.zoomed.has(check.name), alarms: mine, width });
  if (!series.failed) set(parts.readout, "");
  reader(drawing, (text) => set(parts.readout, text));
  parts.plot.replaceChildren(drawing.root);
  if (focused) drawing.root.focus();
  legend(parts.legend, check.target, points, mine);
}

function legend(list, target, points, mine) {
  const entries = [["", "pass rate with 95% interval"]];
  if (target != null) entries.push(["of-target", `target ${percent(target)}`]);
  if (mine.length) entries.push(["of-alarm", "alarm open"]);
  entries.push(["of-covered", "covered"]);
  if (points.some((p) => p.missing_share > 0)) entries.push(["of-missing", "missing"]);
  entries.push(["of-count", "judged"]);
  list.replaceChildren(...entries.map(([c, text]) => el("li", { class: c }, text)));
}

export function alarms(all, explain, choose) {
  const open = all.filter((a) => a.state !== "closed"), past = all.filter((a) => a.state === "closed").slice(0, 10);
  byId("open-alarms").hidden = !open.length;
  byId("past-alarms").hidden = !past.length;
  const make = (a) => alarmCard(a, explain, choose);
  fill(byId("open-list"), open, (a) => `${a.id} ${a.revision}`, updateAlarm, make);
  fill(byId("past-list"), past, (a) => `${a.id} ${a.revision}`, updateAlarm, make);
}

function updateAlarm(card, a) {
  const pill = card.querySelector(".data");
  pill.hidden = a.data !== "no_data";
}

function alarmCard(a, explain, choose) {
  const name = sliceName(a.slice ?? {});
  const show = () => {
    choose({ name: a.check }, name);
    document.getElementById(`check-${a.check}`)?.closest("article").scrollIntoView({ block: "start" });
  };
  const until = a.closed_at ? ` to ${date(a.closed_at)}` : "";
  return el("article", { class: "alarm-card", "data-state": a.state, "data-alarm": a.id },
    el("div", { class: "row" },
      el("strong", {}, `${a.check}, ${name}`),
      el("span", { class: "pill", "data-state": a.state }, a.state),
      el("span", { class: "pill data", "data-state": "no_data", hidden: "" }, "no data to confirm or close it"),
      el("span", { class: "quiet" }, `${date(a.opened_at)}${until}`),
      el("button", { type: "button", class: "show", onclick: show }, "show")),
    el("p", {}, a.summary), a.note ? el("p", { class: "quiet" }, a.note) : null, evidence(a, explain));
}

function evidence(a, explain) {
  let e;
  try { e = JSON.parse(a.evidence); } catch { return null; }
  if (!e?.worst?.length) return null;
  return el("details", {}, el("summary", {}, e.worst.length === 1 ? "The worst answer behind it" : `The ${e.worst.length} worst answers behind it`),
    ...e.worst.map((w) => el("div", { class: "item" },
      el("div", { class: "row" }, el("span", { class: "quiet" }, `${date(w.time)}, ${w.option}, score ${Number(w.score).toFixed(2)}`),
        el("button", { type: "button", onclick: () => explain(w.id) }, "why")),
      w.excerpt ? el("p", {}, el("span", { class: "quiet" }, "asked: "), w.excerpt) : null,
      w.answer_excerpt ? el("p", {}, el("span", { class: "quiet" }, "answered: "), w.answer_excerpt) : null)));
}
