// A form that changes something is sent once, however often its button is pressed; the server makes one of it in any case.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.classList.contains("once")) return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "1";
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) for (const form of document.querySelectorAll("form.once")) delete form.dataset.sent;
});
// After the first start: the daemon's page opens as soon as the daemon is there.
const door = document.querySelector("a[data-opens]");
if (door) {
  const health = new URL("/health/live", door.href);
  // Where the old daemon still answers, it has to be gone first; a restart that was too quick to be seen is believed after a while.
  let old = "firstGone" in door.dataset ? 20 : 0;
  const look = () => fetch(health, { mode: "no-cors", cache: "no-store" })
    .then((answer) => answer.ok || answer.type === "opaque", () => false)
    .then((there) => {
      if (there && old > 0) old -= 1; else old = 0;
      return there && !old ? location.assign(door.href) : setTimeout(look, 300);
    });
  setTimeout(look, 700);
}
// Nothing looks true while the box is silent: stopped, or a cable that swallows every byte. After ten seconds without an answer the screen says so
// and shows no state; it catches up by itself.
const silent = document.getElementById("silent");
if (silent) {
  const PATIENCE = 10000, EVERY = 3000;
  let heard = performance.now(), looked = heard;
  const again = () => { const live = document.getElementById("live"); if (live) htmx.trigger(live, "sse:change"); };
  const say = (gone) => { silent.hidden = !gone; document.body.classList.toggle("is-silent", gone); };
  const hear = () => { heard = performance.now(); if (!silent.hidden) { say(false); again(); } };
  const ask = () => fetch("/health/live", { cache: "no-store", signal: AbortSignal.timeout(EVERY) })
    .then((answer) => { if (answer.ok) hear(); else say(true); }, () => {});
  const look = () => {
    const now = performance.now();
    // A tab or a phone that was asleep asks before it judges.
    if (now - looked > 2 * EVERY) heard = Math.max(heard, now - PATIENCE + EVERY);
    looked = now;
    if (now - heard >= PATIENCE) say(true);
    ask();
  };
  setInterval(look, EVERY);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"])
    document.addEventListener(name, () => say(true));
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) hear(); });
  // The stream breaks off first: asking tells whether the box is gone, or the session is over.
  document.addEventListener("htmx:sseError", again);
  document.addEventListener("htmx:sseOpen", hear);
}
