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
