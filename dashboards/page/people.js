// The judge held against people's labels: a row for each window and origin of labels.
import { intervalBar } from "./chart.js";
import { count, el, fill, interval, percent } from "./words.js";

const origins = { sampled: "drawn labels", imported: "imported labels" };
const number = (v) => (v == null ? "–" : v.toFixed(3));

export function people(box, slice, check) {
  const rows = slice.calibration ?? [];
  const { waiting = 0, unmatched = 0 } = check.label_queue ?? {};
  box.hidden = !rows.length && !waiting && !unmatched;
  if (box.hidden) return;
  if (!box.firstChild) {
    box.append(el("h4", {}, "Judge against people"),
      el("table", { class: "windows" }, el("caption", { class: "hidden" }, "Share of labelled interactions on which the judge and people agree, by window"), el("tbody", {})),
      el("div", { class: "sentences" }), el("p", { class: "quiet queue" }));
  }
  fill(box.querySelector("tbody"), rows, (c) => `${c.window} ${c.origin}`, (row, c) => {
    const [name, bar, value, n] = row.children;
    name.textContent = rows.some((o) => o.origin !== rows[0].origin) ? `${c.window} ${c.origin}` : c.window;
    bar.replaceChildren(intervalBar(c.agreement, null, c.n_eff < 5));
    value.textContent = percent(c.agreement.value);
    value.title = `95% interval ${interval(c.agreement)}`;
    n.textContent = `n ${count(c.labels)}`;
  }, () => el("tr", {}, el("th", { scope: "row" }), el("td", { class: "bar" }), el("td", {}), el("td", { class: "quiet" })));
  // In words: each origin's longest window, which comes last.
  const longest = Object.keys(origins).map((o) => rows.findLast((c) => c.origin === o)).filter(Boolean);
  fill(box.querySelector(".sentences"), longest, (c) => c.origin, (p, c) => { p.textContent = sentence(c); }, () => el("p", { class: "quiet" }));
  box.querySelector(".queue").textContent = [
    waiting ? `${count(waiting)} labels wait for the judgement of their interaction.` : "",
    unmatched ? `${count(unmatched)} belong to nothing that was judged within 7 days.` : "",
  ].filter(Boolean).join(" ");
}

function sentence(c) {
  const parts = [`${c.window}, ${count(c.labels)} ${origins[c.origin]}: agreement between ${percent(c.agreement.lower)} and ${percent(c.agreement.upper)}`,
    `beyond chance (kappa) ${number(c.kappa)}`];
  if (c.brier != null) parts.push(`Brier score ${number(c.brier)}`);
  if (c.error != null) parts.push(`probabilities off by ${percent(c.error)}, noise taken out (p ${number(c.p_value)})`);
  return parts.join("; ") + (c.labels < 100 ? "; few labels." : ".");
}
