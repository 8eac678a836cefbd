// Keeps an open page fresh. Everything works without it: a reload shows the same.
// The server tells topics; the page then asks for itself again and takes over what is inside <main>.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  const main = document.getElementById("main");
  const live = document.getElementById("live");
  const topics = new Set((main.dataset.topics || "").split(" ").filter(Boolean));
  if (!document.querySelector("header nav a")) return;
  const ENDED = "Your login has ended. Reload the page to log in again.";
  let stale = false, asking = false, lost = false, ended = false;

  const say = (text) => { if (live.textContent !== text) live.textContent = text; };

  const busy = () => {
    const active = document.activeElement;
    return active && main.contains(active) && /^(INPUT|TEXTAREA|SELECT)$/.test(active.tagName);
  };

  // What somebody unfolded or folded stays so.
  const keep = (fresh) => {
    const known = new Map([...main.querySelectorAll("details > summary")].map((one) => [one.textContent, one.parentElement.open]));
    for (const summary of fresh.querySelectorAll("details > summary")) {
      if (known.has(summary.textContent)) summary.parentElement.open = known.get(summary.textContent);
    }
  };

  const place = () => {
    const active = document.activeElement;
    if (!active || !main.contains(active) || active === main) return null;
    return { href: active.getAttribute("href"), id: active.id, text: active.textContent };
  };

  const back = (where) => {
    if (!where) return;
    const same = [...main.querySelectorAll("a, button, summary, input, select")].find((one) =>
      (where.id && one.id === where.id) || (where.href && one.getAttribute("href") === where.href) ||
      (!where.id && !where.href && one.textContent === where.text));
    if (same) same.focus({ preventScroll: true });
  };

  const take = (html) => {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const content = fresh.getElementById("main"), banners = fresh.getElementById("banners");
    if (!content || !banners) return;
    document.getElementById("banners").replaceChildren(...banners.childNodes);
    keep(content);
    if (content.innerHTML === main.innerHTML) return;
    const where = place();
    main.replaceChildren(...content.childNodes);
    back(where);
  };

  const refresh = async () => {
    if (asking || busy() || document.hidden) { stale = true; return; }
    asking = true; stale = false;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual" });
      if (answer.type === "opaqueredirect") { ended = true; say(ENDED); return; }
      take(await answer.text());
    } catch { stale = true; } finally { asking = false; }
  };

  // What grows between two words of the server says so itself.
  setInterval(() => { if (main.querySelector("[data-live]")) refresh(); }, 2000);

  // Whether the control plane is back and knows nothing of this login: it was started anew.
  const check = async () => {
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual" });
      if (answer.type === "opaqueredirect") { ended = true; say(ENDED); }
    } catch { /* still gone */ }
  };

  const listen = () => {
    const source = new EventSource("/events");
    source.addEventListener("hello", () => {
      if (lost) { say("Connected again."); setTimeout(() => { if (!lost) say(""); }, 4000); lost = false; refresh(); }
    });
    source.addEventListener("change", (event) => {
      if (event.data.split(" ").some((topic) => topics.has(topic))) refresh();
    });
    source.addEventListener("bye", () => { source.close(); ended = true; say(ENDED); });
    source.addEventListener("error", async () => {
      if (ended) return;
      lost = true;
      say("The connection to the control plane is lost; trying again.");
      if (source.readyState !== EventSource.CLOSED) return;
      await check();
      if (!ended) setTimeout(listen, 3000);
    });
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    } catch { say("The browser does not let this page copy."); }
  });
  const late = () => { if (stale) refresh(); };
  document.addEventListener("visibilitychange", late);
  main.addEventListener("focusout", () => setTimeout(late, 100));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || busy() || event.ctrlKey || event.metaKey || event.altKey) return;
    const find = document.getElementById("q");
    if (find) { event.preventDefault(); find.focus(); }
  });
  listen();
})();
