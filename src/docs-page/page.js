/* Scalar's API reference, https://scalar.com. Nothing here or there may ask another host: the Content-Security-Policy
 * (docs-routes.ts) refuses it, and the switches keep it from being tried. */

const mount = document.querySelector("#reference");
const openApi = await (await fetch("/openapi.json")).json();
// Scalar would take what is in there for a rendered page.
mount.replaceChildren();

Scalar.createApiReference(mount, {
  content: forTrying(openApi),
  // No fonts, statistics, assistants, accounts or proxy of Scalar's.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
  // Where the page is narrow, the response stands below the request.
  onResponseReceived() {
    requestAnimationFrame(() => document.querySelector("section[aria-label=Response]")?.scrollIntoView());
  },
  // The document as it is served, not as it is shown here.
  documentDownloadType: "none",
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: "preserve",
  modelsSectionLabel: "Schemas",
});

/**
 * The document with values that work when a call is tried. It names the credentials twice, as security schemes and as
 * header parameters; the page keeps the parameters, whose values are seen and edited like all others.
 */
function forTrying({ components: { securitySchemes: _, ...components }, paths, ...others }) {
  const values = {
    udid: newUdid(),
    ...(mount.dataset.applicationId && { applicationid: mount.dataset.applicationId }),
  };
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    delete operation.security;
    for (const parameter of operation.parameters ?? []) {
      if (parameter.in !== "header") continue;
      parameter.example = values[parameter.name] ?? parameter.example;
      // Nobody's secret: it would be sent, and refused, where none is needed.
      if (parameter.name === "applicationsecret" && !parameter.required) delete parameter.example;
    }
  }
  return { ...others, components, paths };
}

/** A device of its own for each visit, so that the first try makes a badge. */
function newUdid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `try-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
