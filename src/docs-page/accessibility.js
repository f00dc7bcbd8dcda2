/* Repairs what Scalar's markup lacks for people who use a keyboard or a screen reader. Scalar renders what comes into view,
 * and renders it again when it changes, so elements are repaired as they appear. test/node/docs.test.ts checks the result
 * against WCAG with axe-core. */

/** Repairs by selector. A repaired element must no longer match its selector, or the observer would loop. */
const REPAIRS = {
  // The keyboard could not reach code that scrolls.
  "code.custom-scroll:not([tabindex='0'])": makeFocusable,
  ".cm-scroller:not([tabindex='0'])": makeFocusable,
  // An icon alone has no accessible name.
  'button[class~="group/copy-button"]:not([aria-label])': (button) => button.setAttribute("aria-label", "Copy"),
  // These name elements that are rendered only when the button is used.
  'button[class~="group/copy-button"][aria-controls]': (button) => button.removeAttribute("aria-controls"),
  "button[role=none]": (button) => button.removeAttribute("role"),
  // Every operation has one, so they are useless as landmarks.
  ".response-card[role=region]": (card) => card.setAttribute("role", "group"),
  // The heading that names it is rendered only when it comes into view: until then two of them have the same name.
  ".tag-section-container[role=region]": (section) => section.setAttribute("role", "group"),
  "[role=combobox]:not([aria-expanded])": (input) => input.setAttribute("aria-expanded", "false"),
  ".cm-content[contenteditable=true]:not([aria-label])": (editor) => editor.setAttribute("aria-label", "Request body"),
  ".cm-content[contenteditable=false]:not([aria-label])": (text) => text.setAttribute("aria-label", "Response body"),
  '[role=dialog] section[aria-label^="Notifications"]:not([aria-label$="request"])': (section) =>
    section.setAttribute("aria-label", "Notifications of the request"),
};

const ANY = Object.keys(REPAIRS).join();

/** Attributes that the selectors test, without `style`, which changes with every scroll step. */
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

/** Only what has changed is searched, because the page has tens of thousands of elements. */
function repairIn(root) {
  for (const element of [root, ...root.querySelectorAll(ANY)]) {
    for (const [selector, repair] of Object.entries(REPAIRS)) if (element.matches(selector)) repair(element);
  }
}

const openDialogs = document.getElementsByClassName("scalar-client--open");

/** A closed dialog stays in the page. Only the dialog or the page behind it is in use, so there is one main landmark. */
function setAsideWhatIsBehind() {
  document.querySelector("main.references-rendered")?.toggleAttribute("inert", openDialogs.length > 0);
}

function repairChanged(changes) {
  const roots = changes.flatMap(({ type, target, addedNodes }) => (type === "attributes" ? [target] : [...addedNodes]));
  for (const root of new Set(roots)) if (root instanceof Element && root.isConnected) repairIn(root);
  setAsideWhatIsBehind();
}

// At once, not with the next frame, because a dialog that closes returns the focus to a button of the page.
new MutationObserver(repairChanged).observe(document.body, {
  childList: true,
  subtree: true,
  attributeFilter: ATTRIBUTES,
});
repairIn(document.body);
