// Tables that are wider than the page scroll. They say so (site.css), and take the focus, so that keys scroll them.
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const wide = target.scrollWidth > target.clientWidth;
    target.classList.toggle("scrolls", wide);
    target.tabIndex = wide ? 0 : -1;
  }
});
addEventListener("load", () =>
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((element) => widths.observe(element)));
