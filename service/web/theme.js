// Runs before the page is painted, so that a chosen theme never flashes in the other one's colours.
"use strict";
try {
  const chosen = JSON.parse(localStorage.getItem("tandem.theme"));
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is switched off: the system's theme it is.
}
