import { render } from "preact";
import { App } from "./app.tsx";
import { readLink } from "./link.ts";
import { isGerman, words } from "./words.ts";

document.documentElement.lang = isGerman ? "de" : "en";
document.title = words.title;

// Another link in the same tab is another visit, so it starts afresh.
addEventListener("hashchange", () => location.reload());

const mount = document.querySelector("#pass");
const baseUrl = location.origin + location.pathname.replace(/\/pass\/?$/, "");
if (mount !== null) render(<App invited={readLink(location.hash)} baseUrl={baseUrl} />, mount);
