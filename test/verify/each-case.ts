import { expect } from "vitest";

/**
 * Checks every case of a file of vectors in one test: a test for each takes longer than what it checks. A failure shows the
 * cases that differ by their names.
 */
export async function expectEach<Case>(
  cases: readonly Case[],
  nameOf: (one: Case) => string,
  { actual, expected }: { actual: (one: Case) => unknown; expected: (one: Case) => unknown },
): Promise<void> {
  const names = cases.map(nameOf);
  expect(new Set(names).size).toBe(cases.length);
  expect(cases.length).toBeGreaterThan(0);
  const found = await Promise.all(cases.map(actual));
  expect(Object.fromEntries(names.map((name, index) => [name, found[index]]))).toEqual(
    Object.fromEntries(cases.map((one, index) => [names[index], expected(one)])),
  );
}

/** How the cases of the published vectors are named. */
export const nameOf = ({ expected, name }: { expected: string; name: string }): string => `${expected}: ${name}`;
