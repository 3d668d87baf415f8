// A form that changes something is sent once, however often its button is pressed, and again where no answer came for so long. One with a key or a
// decision is sent in the background: without an answer, or a session, what was typed stays, and sent again it is done once. A print may come twice, and says so.
const UNANSWERED = 30000;
const release = (form) => { delete form.dataset.sent; for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled"); };
const [unanswered, ended] = ["unanswered", "ended"].map((id) => document.getElementById(id));
const isInBackground = (form) => unanswered && form && (form.elements.key || form.elements.decision || "unanswered" in form.dataset);
const sayOnce = unanswered?.textContent;
const answered = (text) => {
  const main = new DOMParser().parseFromString(text, "text/html").getElementById("main");
  if (!main) throw new Error("not a screen of this page");
  document.getElementById("main").replaceWith(main);
  htmx.process(main);
  prepare();
  window.scrollTo(0, 0);
  main.querySelector("[autofocus]")?.focus();
};
const stay = (form, why) => {
  if (!form.isConnected) return;
  release(form);
  form.append(why);
  why.hidden = false;
  why.focus();
};
const send = async (form, button) => {
  const body = new URLSearchParams(new FormData(form));
  if (button?.name) body.set(button.name, button.value);
  unanswered.hidden = ended.hidden = true;
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/html" } });
    if (!answer.redirected) answered(await answer.text());
    else if (new URL(answer.url).pathname === "/ui/login") stay(form, ended);
    else location.assign(answer.url);
  } catch {
    unanswered.textContent = form.dataset.unanswered || sayOnce;
    stay(form, unanswered);
    document.dispatchEvent(new Event("htmx:sendError"));
  }
};
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.classList.contains("once")) return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "1";
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
  setTimeout(release, UNANSWERED, form);
  if (isInBackground(form)) { event.preventDefault(); send(form, event.submitter); }
});
// The login does not take the place of a screen on which something is typed.
document.addEventListener("input", (event) => { if (isInBackground(event.target.form)) event.target.form.dataset.typed = "1"; });
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const typed = document.querySelector("form[data-typed]");
  if (!typed || !event.detail.xhr.getResponseHeader("HX-Redirect")) return;
  event.preventDefault();
  if (ended.hidden && !typed.dataset.sent) stay(typed, ended);
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) document.querySelectorAll("form.once").forEach(release);
});
// The account menu closes with Escape, and where somebody presses beside it.
const account = document.querySelector("details.account");
if (account) {
  account.addEventListener("keydown", (event) => { if (event.key === "Escape" && account.open) { account.open = false; account.firstElementChild.focus(); } });
  document.addEventListener("click", (event) => { if (!account.contains(event.target)) account.open = false; });
}
// The banner is renewed when it has changed: a screen reader is not to hear it every few seconds.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.target.id === "state" && event.target.innerHTML.trim() === event.detail.serverResponse.trim()) event.detail.shouldSwap = false;
});
// A tab that nobody looks at says in its title what the banner says.
const title = document.title;
const mark = () => {
  const silence = document.getElementById("silent"), banner = document.querySelector("#state .banner");
  const level = silence && !silence.hidden ? "bad" : banner ? banner.dataset.level : "good";
  document.title = { bad: "⛔ ", amber: "⚠ ", good: "" }[level] + title;
};
mark();
document.addEventListener("htmx:afterSettle", mark);
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
  const say = (gone) => { silent.hidden = !gone; document.body.classList.toggle("is-silent", gone); mark(); };
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
// On a desk an invoice of the journal opens beside the list; on less room, or with a key held, it is a screen of its own. Escape closes it.
const beside = document.getElementById("beside");
if (beside) {
  let opened = null;
  const show = (link) => {
    if (opened) opened.removeAttribute("aria-current");
    opened = link;
    beside.hidden = !link;
    if (link) { link.setAttribute("aria-current", "true"); beside.focus(); }
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".journal a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || !matchMedia("(min-width: 85rem)").matches) return;
    event.preventDefault();
    htmx.ajax("GET", link.href, { target: beside, select: "main > :not(.machines)" }).then(() => show(link));
  });
  beside.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const link = opened;
    show(null);
    (link.isConnected ? link : document.querySelector("[name=q]")).focus();
  });
}
// Of a row that scrolls, the chosen one is in sight, and the one that Tab has reached.
document.addEventListener("focusin", (event) => {
  if (event.target.matches(":is(.chips, .tabs, .machines) a:focus-visible")) event.target.scrollIntoView({ block: "nearest", inline: "nearest" });
});
for (const chosen of document.querySelectorAll(".tabs [aria-current], .chips [aria-current], main .machines [aria-current]")) chosen.scrollIntoView({ block: "nearest", inline: "center" });
// As the server reads what people write: three digits behind a point or a comma are thousands, and the currency is left out.
const whole = (text) => {
  const plain = text.replace(/\s/g, "").replace(/(F|FCFA|XOF)$/i, "");
  return /^[1-9]\d{0,2}([.,]\d{3})+$/.test(plain) ? plain.replace(/[.,]/g, "") : plain;
};
const decimal = (text) => Number(text.replace(/\s/g, "").replace(",", ".")) || 0;
const francs = (sum) => `${String(sum).replace(/\B(?=(\d{3})+$)/g, "\u00a0")}\u00a0F\u00a0CFA`;
// Of the screen, also where the answer to a form took its place.
const prepare = () => {
  // Counting the drawer: notes and coins make the sum, and the difference is seen before anything is closed.
  const counted = document.getElementById("counted");
  if (counted) {
    const expected = Number(document.querySelector("[data-expected]").dataset.expected);
    const difference = document.getElementById("difference");
    const number = (text) => Number(whole(text) || 0);
    document.getElementById("close").addEventListener("input", (event) => {
      const pieces = [...document.querySelectorAll("[data-piece]")];
      if (event.target.dataset.piece) counted.value = String(pieces.reduce((sum, each) => sum + each.dataset.piece * number(each.value), 0));
      else for (const each of pieces) each.value = "";
      const off = number(counted.value) - expected;
      difference.textContent = counted.value === "" || Number.isNaN(off) ? "" : difference.dataset.words.replace("@", (off > 0 ? "+" : "") + francs(off));
      difference.className = off ? "bad" : "good";
    });
  }
  // An invoice by hand: the total as it is typed, price and group of an article that was sold before, a line more when the last one is in use.
  const sale = document.getElementById("sale");
  if (sale) {
    const known = new Map([...document.querySelectorAll("#articles option")].map((each) => [each.value, each.dataset]));
    const lines = [...sale.querySelectorAll(".line")];
    const look = (event) => {
      let total = 0, last = 0;
      lines.forEach((line, at) => {
        const [name, price, quantity] = line.querySelectorAll("input");
        const before = known.get(name.value);
        if (before && event && event.target === name) { price.value = before.price; line.querySelector("select").value = before.group; }
        if (name.value) { last = at + 1; total += Math.round(decimal(whole(price.value)) * decimal(quantity.value)); }
      });
      lines.forEach((line, at) => { line.hidden = at > last; });
      document.getElementById("total").textContent = francs(total);
    };
    sale.addEventListener("input", look);
    look();
  }
  // A credit note: of many lines few are credited, a line whose quantity is typed is one of them, and the total is seen before it is certified,
  // with what rounding has left of the sale (`selling._without_rounding`).
  const credit = document.getElementById("credit"), untick = document.getElementById("untick");
  if (credit) {
    const credited = document.getElementById("credited"), boxes = [...credit.querySelectorAll("[data-amount]")];
    const look = () => {
      let total = 0, ticked = 0, isAll = true, isRest = true;
      for (const box of boxes) {
        const typed = box.closest(".fields").querySelector("[inputmode]").value, whole = Number(box.dataset.whole);
        const part = typed ? Math.round(decimal(typed) * 1000) : whole;
        if (box.checked) { total += Math.floor((2 * box.dataset.amount * part + whole) / (2 * whole)); ticked += 1; }
        isAll = isAll && box.checked && part === whole;
        isRest = isRest && (box.checked ? part : 0) === Number(box.dataset.left);
      }
      const excess = total - credited.dataset.left;
      if ((excess > 0 || isRest) && Math.abs(excess) <= ticked + boxes.length) total -= excess;
      credited.textContent = francs(isAll ? credited.dataset.whole : total);
    };
    credit.addEventListener("input", (event) => {
      if (event.target.name.startsWith("quantity")) event.target.closest(".fields").querySelector("[data-amount]").checked = true;
      look();
    });
    look();
    if (untick) {
      untick.hidden = false;
      untick.addEventListener("click", () => { for (const box of boxes) box.checked = false; look(); });
    }
  }
};
prepare();
