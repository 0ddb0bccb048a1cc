(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  let pictures = JSON.parse(byId("pictures").textContent);

  // ---- pictures: each is in the page once, and shown where its number stands
  function fill(scope) {
    for (const image of scope.querySelectorAll("img[data-picture]:not([src])")) {
      if (!image.closest("[hidden]")) image.src = pictures[image.dataset.picture];
    }
  }

  // ---- parts that can be pointed at, each with a panel that says more
  const nodesOf = (explorer) => [...explorer.querySelectorAll("[data-panel]")];
  const isShown = (node) => node.getClientRects().length > 0;

  function show(explorer, name) {
    for (const node of nodesOf(explorer)) {
      const chosen = node.dataset.panel === name;
      node.setAttribute("aria-pressed", String(chosen));
      node.setAttribute("tabindex", chosen ? "0" : "-1");
    }
    for (const panel of explorer.querySelectorAll(".panel")) panel.hidden = panel.dataset.name !== name;
    explorer.dataset.shown = name;
    place(explorer);
    fill(explorer);
  }

  function begin(scope) {
    for (const explorer of scope.querySelectorAll(".explorer")) {
      const open = explorer.querySelector(".panel:not([hidden])");
      if (open) show(explorer, open.dataset.name);
    }
    fill(scope);
  }

  // On a narrow screen the panel comes right below what was tapped.
  const narrow = matchMedia("(max-width: 860px)");
  function place(explorer) {
    const panels = explorer.querySelector(".panels");
    const node = nodesOf(explorer).find((each) => each.dataset.panel === explorer.dataset.shown && isShown(each));
    const room = narrow.matches && node ? node.closest(".step, .removed") : null;
    if (room) room.append(panels);
    else if (narrow.matches && node && node.closest("li")) node.after(panels);
    else if (panels.parentElement !== explorer) explorer.append(panels);
  }
  narrow.addEventListener("change", () => document.querySelectorAll(".explorer").forEach(place));

  const nodeAt = (event) => (event.target instanceof Element ? event.target.closest("[data-panel]") : null);

  let intent = 0;
  function pin(node) {
    clearTimeout(intent);
    const explorer = node.closest(".explorer");
    explorer.dataset.pinned = node.dataset.panel;
    show(explorer, node.dataset.panel);
    const panel = [...explorer.querySelectorAll(".panel")].find((each) => !each.hidden);
    const box = panel && panel.getBoundingClientRect();
    if (box && (box.top > innerHeight - 120 || box.bottom < 60)) panel.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  let pointer = "";
  const placeOf = (event) => `${event.clientX} ${event.clientY}`;
  document.addEventListener("pointermove", (event) => { pointer = placeOf(event); });
  document.addEventListener("click", (event) => { const node = nodeAt(event); if (node) pin(node); });
  document.addEventListener("focusin", (event) => {
    const node = nodeAt(event);
    if (node && node.matches(":focus-visible")) show(node.closest(".explorer"), node.dataset.panel);
  });
  document.addEventListener("pointerover", (event) => {
    clearTimeout(intent);
    if (event.pointerType !== "mouse" || !(event.target instanceof Element)) return;
    if (placeOf(event) === pointer) return; // the page was scrolled below a mouse that rests
    const node = nodeAt(event);
    const explorer = event.target.closest(".explorer");
    if (node) intent = setTimeout(() => show(explorer, node.dataset.panel), 90);
    else if (explorer && explorer.dataset.pinned && !event.target.closest(".drawing, svg")) show(explorer, explorer.dataset.pinned);
  });

  const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  document.addEventListener("keydown", (event) => {
    clearTimeout(intent);
    const node = nodeAt(event);
    if (!node || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pin(node);
      return;
    }
    const nodes = nodesOf(node.closest(".explorer")).filter(isShown);
    const here = nodes.indexOf(node);
    let next = event.key in MOVES ? here + MOVES[event.key] : -1;
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = nodes.length - 1;
    if (next < 0 || next >= nodes.length) return;
    event.preventDefault();
    show(node.closest(".explorer"), nodes[next].dataset.panel);
    nodes[next].focus();
  });

  // ---- light and dark
  const THEMES = ["auto", "light", "dark"];
  const system = matchMedia("(prefers-color-scheme: dark)");
  let theme = "auto";
  try { theme = localStorage.getItem("augtree-theme") || "auto"; } catch { theme = "auto"; }
  function paint() {
    root.dataset.theme = theme === "auto" ? (system.matches ? "dark" : "light") : theme;
    byId("theme-name").textContent = theme;
  }
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try { localStorage.setItem("augtree-theme", theme); } catch { /* it is not kept */ }
    paint();
  });
  system.addEventListener("change", paint);

  // ---- copying the command
  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
    if (!button) return;
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
    }
  });

  // ---- live: the parts that have changed are replaced where they stand
  const live = JSON.parse(byId("live").textContent);

  function replaced(id, html, fresh) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const part = template.content.firstElementChild;
    const old = byId(id);
    const open = old ? [...old.querySelectorAll("details[open] > summary")].map((each) => each.textContent) : [];
    const shown = old ? [...old.querySelectorAll(".explorer")].map((each) => each.dataset.shown) : [];
    const focus = old && old.contains(document.activeElement) ? document.activeElement.dataset.panel : null;
    if (old) old.replaceWith(part);
    if (fresh) part.classList.add("fresh");
    for (const each of part.querySelectorAll("details > summary")) if (open.includes(each.textContent)) each.parentElement.open = true;
    const explorers = [...part.querySelectorAll(".explorer")];
    explorers.forEach((explorer, i) => {
      if (shown[i] && nodesOf(explorer).some((node) => node.dataset.panel === shown[i])) show(explorer, shown[i]);
    });
    if (focus) {
      const again = explorers.flatMap(nodesOf).find((node) => node.dataset.panel === focus && isShown(node));
      if (again) again.focus();
    }
    return part;
  }

  function update(news) {
    pictures = news.pictures;
    const main = byId("main");
    for (const id of Object.keys(live.parts)) {
      if (!(id in news.parts)) byId(id).remove();
    }
    news.order.forEach((id, i) => {
      const { version, html } = news.parts[id];
      if (live.parts[id] === version && byId(id)) return;
      const isNew = !byId(id);
      const part = replaced(id, html, live.version !== null);
      if (isNew) main.insertBefore(part, main.children[i] || null);
      begin(part);
    });
    live.parts = Object.fromEntries(news.order.map((id) => [id, news.parts[id].version]));
    live.version = news.version;
    document.title = news.title;
  }

  function say(words, kind) {
    const line = byId("live-state");
    if (line.textContent !== words) line.textContent = words;
    line.className = `live ${kind}`;
  }

  let wait = 700;
  async function ask() {
    try {
      const answer = await fetch(`${live.address}?version=${live.version}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const news = await answer.json();
      if (news.parts) update(news);
      say(news.open ? "live" : "finished", news.open ? "on" : "");
      wait = news.open ? 700 : 3000;
    } catch {
      say("the server has stopped; this is the last that is known", "off");
      wait = Math.min(10000, wait * 2);
    }
    setTimeout(ask, wait);
  }

  paint();
  begin(document);
  if (live) ask();
})();
