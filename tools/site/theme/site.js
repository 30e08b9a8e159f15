// Tables and code that are wider than the page scroll. They take the focus, so that keys scroll them, and tables say so
// (site.css).
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const wide = target.scrollWidth > target.clientWidth;
    target.classList.toggle("scrolls", wide);
    wide ? target.setAttribute("tabindex", 0) : target.removeAttribute("tabindex");
  }
});
addEventListener("load", () => {
  document.querySelector(".md-search").setAttribute("aria-label", "Search"); // the theme's dialog has no name
  document.querySelectorAll(".md-typeset__scrollwrap, pre > code").forEach((element) => widths.observe(element));
});
