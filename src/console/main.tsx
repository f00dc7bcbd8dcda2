import { render } from "preact";
import { App } from "./app.tsx";

const mount = document.querySelector("#console");
if (mount !== null) render(<App />, mount);

// The hash names a view, so this link cannot use it.
document.querySelector(".skip-link")?.addEventListener("click", (event) => {
  event.preventDefault();
  document.querySelector<HTMLElement>("main h1")?.focus();
});
