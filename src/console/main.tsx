import { render } from "preact";
import { App } from "./app.tsx";

const mount = document.querySelector("#console");
if (mount !== null) render(<App />, mount);
