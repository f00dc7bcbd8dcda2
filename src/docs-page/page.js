/* Scalar's API reference, https://scalar.com. The Content-Security-Policy (docs-routes.ts) refuses requests to other hosts,
 * and the settings keep Scalar from trying any. */

const mount = document.querySelector("#reference");
const openApi = await (await fetch("/openapi.json")).json();
// Scalar would take the content for a rendered page.
mount.replaceChildren();

Scalar.createApiReference(mount, {
  content: forTrying(openApi),
  // Switches off Scalar's fonts, statistics, assistants, accounts and proxy.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
  // On a narrow page, the response is below the request.
  onResponseReceived() {
    requestAnimationFrame(() => document.querySelector("section[aria-label=Response]")?.scrollIntoView());
  },
  // The page's document differs from the one that is served, so it offers no download.
  documentDownloadType: "none",
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: "preserve",
  modelsSectionLabel: "Schemas",
});

/**
 * The document with values that work when a call is tried. It has the credentials twice, as security schemes and as header
 * parameters. The page keeps only the parameters, whose values are visible and can be edited.
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
      // An example secret would be sent, and refused, although none is needed.
      if (parameter.name === "applicationsecret" && !parameter.required) delete parameter.example;
    }
  }
  return { ...others, components, paths };
}

/** A new device for each visit, so that the first try creates a badge. */
function newUdid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `try-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
