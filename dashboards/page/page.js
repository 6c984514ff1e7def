// The built-in page. page.js fetches and keeps the state; what is drawn is in cards.js,
// chart.js and why.js. Everything it knows comes from the public API.
import { cards, alarms } from "./cards.js";
import { ago, byId, clock, count, date, duration, fill, known, money, percent, sliceName } from "./words.js";
import { why } from "./why.js";

const every = 3000;
const state = { quality: null, pipeline: null, series: new Map(), slices: new Map(), zoomed: new Set(), failedSince: null };

async function get(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(15000), headers: { Accept: "application/json" } });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.detail || answer.statusText);
  return body;
}

// chosen is the slice that a check's card shows.
function chosen(check) {
  const name = state.slices.get(check.name) ?? "all";
  const slices = check.slices ?? [];
  return slices.find((s) => sliceName(s.slice) === name) ?? slices[0] ?? { slice: {} };
}

// refreshSeries asks for a check's chart when the snapshot or the choice is new.
async function refreshSeries(check) {
  const slice = sliceName(chosen(check).slice);
  const of = `${state.quality.snapshot.at} ${check.version} ${slice}`;
  const have = state.series.get(check.name);
  if (have?.of === of || !known(state.quality.snapshot.now)) return;
  const query = new URLSearchParams({ check: check.name, version: check.version, slice });
  try {
    const { points } = await get(`/api/v1/quality/series?${query}`);
    state.series.set(check.name, { of, slice, points });
  } catch (err) {
    state.series.set(check.name, { of, slice, points: have?.slice === slice ? have.points : [], failed: err.message });
  }
}

function current() {
  return (state.quality?.snapshot?.checks ?? []).filter((c) => c.current);
}

async function refresh() {
  try {
    const [quality, pipeline] = await Promise.all([get("/api/v1/quality"), get("/api/v1/pipeline")]);
    Object.assign(state, { quality, pipeline, failedSince: null });
  } catch {
    state.failedSince ??= new Date();
  }
  draw();
  if (state.failedSince || !state.quality.snapshot) return;
  await Promise.all(current().map(refreshSeries));
  draw();
}

const banners = {
  loading: () => "The monitor has not finished its first round yet.",
  absent: () => "This process runs no monitor: start one with --roles monitor, or look at the page of the process that has it.",
  stale: (q) => `The newest numbers are ${duration(q.age_seconds)} old: no round has ended since. Alarms may be missing; Assay's log says why.`,
};

function draw() {
  const q = state.quality;
  const shown = state.failedSince ? "error" : q?.state ?? "loading";
  byId("state").textContent = { ok: "live", error: "no answer", absent: "no monitor" }[shown] ?? shown;
  byId("state").dataset.state = shown;
  const text = shown === "error"
    ? `No answer from this server since ${clock(state.failedSince)}.` + (q?.snapshot ? " What is shown is from before." : "")
    : banners[shown]?.(q ?? {});
  const banner = byId("banner");
  banner.hidden = !text;
  banner.dataset.state = shown;
  if (banner.textContent !== (text ?? "")) banner.textContent = text ?? "";
  document.body.toggleAttribute("data-old", shown === "error" || shown === "stale");
  if (!q) return;
  byId("mode").textContent = q.mode;
  byId("version").textContent = `Assay ${q.version}`;
  byId("refreshed").textContent = q.age_seconds == null ? "" : `numbers ${ago(q.age_seconds)}`;
  pipeline(q, state.pipeline);
  const s = q.snapshot;
  const nothing = byId("nothing");
  nothing.hidden = Boolean(s) && current().length > 0 && known(s.now);
  nothing.textContent = !s ? "No numbers yet." : !current().length ? "The checks file has no check."
    : "Nothing has been read of the log yet. The numbers appear with the first judged interactions.";
  cards(s && known(s.now) ? current() : [], state, { chosen, redraw: draw, choose });
  alarms(s?.alarms ?? [], explain, choose);
}

async function choose(check, slice) {
  state.slices.set(check.name, slice);
  draw();
  const shown = current().find((c) => c.name === check.name);
  if (shown) await refreshSeries(shown);
  draw();
}

function pipeline(q, p) {
  const s = q.snapshot;
  const judged = current().reduce((n, c) => n + (c.slices?.[0]?.windows?.find((w) => w.name === "24h")?.n ?? 0), 0);
  const tiles = [];
  const tile = (name, value, bad = false) => tiles.push({ name, value, bad });
  if (s) {
    tile(s.clock === "event" ? "log read to (event time)" : "log read to", known(s.now) ? date(s.now) : "nothing yet");
    tile("judged in 24 h", count(judged));
  }
  // Record times of a simulated or replayed log say nothing about how late we are.
  const behind = s?.clock === "event" ? 0 : p?.lag_seconds;
  if (p?.lag_records != null) tile("lag", `${count(p.lag_records)} records` + (behind > 60 ? `, ${duration(behind)}` : ""), behind > 900);
  if (p?.in_flight_records != null) tile("in flight", count(p.in_flight_records));
  if (p?.sink_buffer_ratio != null) tile("row buffer", p.sink_open === false ? "ClickHouse takes no rows" : `${percent(p.sink_buffer_ratio, 0)} full`, p.sink_open === false || p.sink_buffer_ratio > .8);
  if (p?.judges_held > 0) tile("judges", `${count(p.judges_held)} left alone`, true);
  if (p?.budget_spent_ratio > 0) tile("budget today", `${percent(p.budget_spent_ratio, 0)} spent`, p.budget_spent_ratio > .9);
  if (p?.cost_usd > 0) tile("judge cost", money(p.cost_usd));
  if (p?.dead_letters != null) tile("dead letters", count(p.dead_letters));
  if (p?.paused?.length) tile("paused by", p.paused.join(", "), true);
  if (p && !p.ready) tile("not ready", p.not_ready || "no reason given", true);
  fill(byId("pipeline"), tiles, (t) => t.name, (box, t) => {
    box.dataset.bad = t.bad;
    box.lastChild.textContent = t.value;
  }, (t) => {
    const box = document.createElement("div");
    box.append(document.createElement("dt"), document.createElement("dd"));
    box.firstChild.textContent = t.name;
    return box;
  });
}

const explain = why(get);

// Dashboards link to an interaction as #why=ID.
function asked() {
  const id = /^#why=(.+)$/.exec(location.hash)?.[1];
  if (!id) return;
  try {
    explain(decodeURIComponent(id));
  } catch { // no escape of a URL: a person typed it
    explain(id);
  }
}
addEventListener("hashchange", asked);
asked();

async function loop() {
  try {
    if (!document.hidden) await refresh();
  } finally {
    setTimeout(loop, every);
  }
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
let resized;
addEventListener("resize", () => { cancelAnimationFrame(resized); resized = requestAnimationFrame(draw); });
loop();
