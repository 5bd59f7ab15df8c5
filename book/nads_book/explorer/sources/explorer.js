// The figures of the book: each is an element, such as <nad-explorer>, of a page or of a notebook's output.

import "./atlas.js";
import "./changes.js";
import "./guess.js";
import "./page.js";
import "./playground/figure.js";
import "./stack.js";
import "./trained.js";
