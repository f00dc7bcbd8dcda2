/* What Scalar's markup lacks for people who use a keyboard or a screen reader. Scalar draws what comes into view, and
 * draws it anew when it changes, so its elements are repaired as they appear. test/node/docs.test.ts holds the result
 * against WCAG with axe-core. */

/** Selector to repair. A repaired element no longer matches its selector, or the observer would never rest. */
const REPAIRS = {
  // Code that scrolls would be out of reach of the keyboard.
  "code.custom-scroll:not([tabindex='0'])": makeFocusable,
  ".cm-scroller:not([tabindex='0'])": makeFocusable,
  // An icon is no name.
  'button[class~="group/copy-button"]:not([aria-label])': (button) => button.setAttribute("aria-label", "Copy"),
  // They name elements that are drawn only when the button is used.
  'button[class~="group/copy-button"][aria-controls]': (button) => button.removeAttribute("aria-controls"),
  "button[role=none]": (button) => button.removeAttribute("role"),
  // Every operation has one: together they are no landmarks to find anything by.
  ".response-card[role=region]": (card) => card.setAttribute("role", "group"),
  // Its heading, which names it, is drawn only when it comes into view: until then two of them have the same name.
  ".tag-section-container[role=region]": (section) => section.setAttribute("role", "group"),
  "[role=combobox]:not([aria-expanded])": (input) => input.setAttribute("aria-expanded", "false"),
  ".cm-content[contenteditable=true]:not([aria-label])": (editor) => editor.setAttribute("aria-label", "Request body"),
  ".cm-content[contenteditable=false]:not([aria-label])": (text) => text.setAttribute("aria-label", "Response body"),
  '[role=dialog] section[aria-label^="Notifications"]:not([aria-label$="request"])': (section) =>
    section.setAttribute("aria-label", "Notifications of the request"),
};

const ANY = Object.keys(REPAIRS).join();

/** Attributes that the selectors test. `style` is not among them: it changes with every step of scrolling. */
const ATTRIBUTES = [
  "aria-controls",
  "aria-expanded",
  "aria-label",
  "class",
  "contenteditable",
  "inert",
  "role",
  "tabindex",
];

function makeFocusable(element) {
  element.setAttribute("tabindex", "0");
}

/** The page has tens of thousands of elements: only what has changed is looked through. */
function repairIn(root) {
  for (const element of [root, ...root.querySelectorAll(ANY)]) {
    for (const [selector, repair] of Object.entries(REPAIRS)) if (element.matches(selector)) repair(element);
  }
}

const openDialogs = document.getElementsByClassName("scalar-client--open");

/** The dialog stays when it is closed. Only one of it and the page behind it is in use, so there is one main landmark. */
function setAsideWhatIsBehind() {
  document.querySelector("main.references-rendered")?.toggleAttribute("inert", openDialogs.length > 0);
}

function repairChanged(changes) {
  const roots = changes.flatMap(({ type, target, addedNodes }) => (type === "attributes" ? [target] : [...addedNodes]));
  for (const root of new Set(roots)) if (root instanceof Element && root.isConnected) repairIn(root);
  setAsideWhatIsBehind();
}

// At once, not with the next frame: a dialog that closes gives the focus back to a button of the page.
new MutationObserver(repairChanged).observe(document.body, {
  childList: true,
  subtree: true,
  attributeFilter: ATTRIBUTES,
});
repairIn(document.body);
