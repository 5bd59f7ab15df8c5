// Loaded by the page of search results alone, behind Sphinx's search and before it begins.

// Search quotes what a reader sees: without buttons, marks and code, and with formulas as text.
Search.htmlToText = (page, anchor) => {
  const content = new DOMParser().parseFromString(page, "text/html");
  const clutter = ".headerlink, script, style, noscript, annotation, .bd-header-article, .claim-mark, .byline, .cell_input, "
    + ".prev-next-area, .bd-footer-article, nad-explorer, nad-guess, nad-atlas";
  for (const part of content.querySelectorAll(clutter)) part.remove();
  const main = (anchor && content.querySelector(`[role="main"] ${anchor}`))
    || content.querySelector('[role="main"] article') || content.querySelector('[role="main"]');
  return main ? main.textContent.replace(/\s+/g, " ") : "";
};

// Chapters come first, equal hits in the order of the book; the pages of the library last.
Scorer.score = ([name, , , , score]) => score
  + (/^(notebooks\/|book\/intro)/.test(name) ? 100 : /^book\/api|^_modules/.test(name) ? -100 : 0)
  - (Number(name.match(/\/(\d\d)_/)?.[1]) || 0) / 100;
