import { afterAll, vi } from "vitest";

/** Before each file: the files share a Node, but none finds what another one set in the environment. */
const before = { ...process.env };

afterAll(() => {
  vi.unstubAllEnvs();
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
});
