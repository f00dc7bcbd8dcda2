import { useState } from "preact/hooks";
import type { Column } from "./table.tsx";

/** The selected rows of a list. Rows that the list no longer shows are not selected. */
export interface Selection<Item> {
  items: readonly Item[];
  column: Column<Item>;
  clear: () => void;
}

/**
 * @param shown the items that the list shows
 * @param nameOf names an item for its checkbox, such as `badge 17, alice`
 */
export function useSelection<Item>(
  shown: readonly Item[],
  keyOf: (item: Item) => string,
  nameOf: (item: Item) => string,
): Selection<Item> {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  const items = shown.filter((item) => keys.has(keyOf(item)));
  const isAll = items.length > 0 && items.length === shown.length;
  const toggle = (key: string) => {
    const next = new Set(keys);
    if (!next.delete(key)) next.add(key);
    setKeys(next);
  };
  const column: Column<Item> = {
    title: "Select",
    head: (
      <input
        type="checkbox"
        aria-label="Select all that are shown"
        checked={isAll}
        onChange={() => setKeys(new Set(isAll ? [] : shown.map(keyOf)))}
      />
    ),
    cell: (item) => (
      <input
        type="checkbox"
        aria-label={`Select ${nameOf(item)}`}
        checked={keys.has(keyOf(item))}
        onChange={() => toggle(keyOf(item))}
      />
    ),
  };
  return { items, column, clear: () => setKeys(new Set()) };
}
