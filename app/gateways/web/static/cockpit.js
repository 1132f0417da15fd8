"use strict";
// Keys go to the cockpit from its first picture on.
new MutationObserver((_changes, observer) => {
  if (!document.body.classList.contains("-first-byte")) return;
  observer.disconnect();
  document.querySelector(".xterm-helper-textarea")?.focus();
}).observe(document.body, { attributeFilter: ["class"] });
