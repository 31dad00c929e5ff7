"use strict";
(() => {
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const tools = document.getElementById("tools");
  const search = document.getElementById("search");
  const rank = document.getElementById("rank");
  const count = document.getElementById("count");
  const fold = document.getElementById("fold");
  tools.hidden = false;

  function filter() {
    const text = search.value.trim().toLowerCase();
    const wanted = rank ? rank.value : "";
    let shown = 0;
    for (const one of all(".findable")) {
      const ranks = one.dataset.ranks;
      const fits = (!text || one.textContent.toLowerCase().includes(text)) &&
        (!wanted || ranks === undefined || ranks.split("\n").includes(wanted));
      one.classList.toggle("lost", !fits);
      if (fits && text) {
        shown += 1;
        for (let up = one.closest("details"); up; up = up.parentElement.closest("details")) up.open = true;
      }
    }
    for (const one of all("[data-rank]")) one.classList.toggle("lost", wanted !== "" && one.dataset.rank !== wanted);
    count.textContent = text ? shown + " found" : "";
  }
  search.addEventListener("input", filter);
  if (rank) rank.addEventListener("change", filter);

  fold.addEventListener("click", () => {
    const open = all("details").some((one) => !one.open);
    for (const one of all("details")) one.open = open;
    fold.textContent = open ? "Fold all" : "Unfold all";
  });

  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.classList.contains("dark") ||
      (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
    root.classList.toggle("dark", !dark);
    root.classList.toggle("light", dark);
  });

  for (const button of all(".copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const pre = button.parentElement.querySelector("pre");
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = "Copied";
      } catch {
        const range = document.createRange();
        range.selectNodeContents(pre);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        button.textContent = "Selected";
      }
    });
  }

  window.addEventListener("beforeprint", () => { for (const one of all("details")) one.open = true; });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
  });
})();
