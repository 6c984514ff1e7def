// The question "why": an id in, every check's outcome out.
import { byId, date, el, percent } from "./words.js";

export function why(get) {
  async function explain(id) {
    const box = byId("why-answer");
    byId("why-id").value = id;
    box.replaceChildren(el("p", { class: "quiet" }, "Looking…"));
    try {
      const answer = await get(`/api/v1/why/${encodeURIComponent(id)}`);
      box.replaceChildren(...draw(answer));
    } catch (err) {
      box.replaceChildren(el("p", {}, `No answer: ${err.message}`));
    }
    byId("why").scrollIntoView({ block: "nearest" });
  }
  byId("why-form").addEventListener("submit", (e) => {
    e.preventDefault();
    const id = byId("why-id").value.trim();
    if (id) explain(id);
  });
  return explain;
}

function draw(a) {
  const parts = [];
  if (a.text) {
    parts.push(el("p", { class: "quiet" }, `${date(a.text.time)}, ${a.text.topic}/${a.text.partition} offset ${a.text.offset}`));
    if (a.text.input) parts.push(el("p", {}, el("span", { class: "quiet" }, "asked: "), a.text.input));
    if (a.text.output) parts.push(el("p", {}, el("span", { class: "quiet" }, "answered: "), a.text.output));
  }
  for (const c of a.checks) {
    parts.push(el("div", { class: "item" },
      el("div", { class: "row" }, el("h3", {}, c.check), el("span", { class: "pill", "data-state": c.outcome }, c.outcome.replaceAll("_", " "))),
      c.because ? el("p", { class: "quiet" }, c.because) : null,
      ...c.rows.map(row)));
  }
  for (const d of a.dead_letters) parts.push(el("p", { class: "item" }, `Dead letter: ${d.reason}. ${d.error}`));
  for (const n of a.notes) parts.push(el("p", { class: "quiet" }, n));
  return parts;
}

function row(r) {
  const verdict = r.status === "ok" ? `${r.passed ? "passed" : "failed"}: ${r.option}, score ${r.score?.toFixed(2)}` : `${r.status}: ${r.reason}`;
  const shares = Object.entries(r.probabilities ?? {}).map(([k, p]) => `${k} ${percent(p, 0)}`).join(", ");
  const judge = [r.judge, r.judge_model].filter(Boolean).join(", ");
  return el("p", {}, `${verdict}${shares ? ` (${shares})` : ""}`, el("br"),
    el("span", { class: "quiet" }, `by ${judge}; weight ${(1 / r.pi).toFixed(1)}; ${date(r.evaluated_at)}${r.current ? "" : `; version ${r.version} of the check`}`));
}
