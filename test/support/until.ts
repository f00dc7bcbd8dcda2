import { vi } from "vitest";

/**
 * Waits until an assertion holds. 10 s, because vitest's own second is too short where other tests take all cores.
 *
 * @throws what the assertion last threw
 */
export const until = (assertion: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(assertion, { timeout: 10_000 });
