/* Scalar's API reference, https://scalar.com. Nothing here or there may ask another host: the Content-Security-Policy
 * (docs-routes.ts) refuses it, and the switches keep it from being tried. */

const mount = document.querySelector("#reference");
// Scalar would take what is in there for a rendered page.
mount.replaceChildren();

Scalar.createApiReference(mount, {
  url: "/openapi.json",
  // No fonts, statistics, assistants, accounts or proxy of Scalar's.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
  // A secret that is typed in is forgotten with the page.
  persistAuth: false,
  authentication: { securitySchemes: { udid: { value: newUdid() } } },
  // Where the page is narrow, the answer stands below the request.
  onResponseReceived() {
    requestAnimationFrame(() => document.querySelector("section[aria-label=Response]")?.scrollIntoView());
  },
  documentDownloadType: "direct",
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: "preserve",
  modelsSectionLabel: "Schemas",
});

/** A device of its own for each visit, so that the first try makes a badge. */
function newUdid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `try-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
