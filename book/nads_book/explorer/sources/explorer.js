// The NAD explorer: one program with two homes. A live notebook calls `render` with an anywidget model; a static page
// holds a <nad-explorer> element, whose model lives in the browser and keeps the view in the page's address.

import "./atlas.js";
import "./changes.js";
import "./guess.js";
import "./page.js";
import "./playground/figure.js";
import "./stack.js";
import "./trained.js";
import { render } from "./notebook.js";

export default { render };
