/** Chooses which states a list shows. */
export function Filter<State extends string>(props: {
  words: Readonly<Record<State, string>>;
  /** Null: all. */
  value: State | null;
  onChange: (state: State | null) => void;
}) {
  const { words, value, onChange } = props;
  const states = Object.keys(words).filter((state): state is State => Object.hasOwn(words, state));
  return (
    <label class="filter">
      Show
      <select
        value={value ?? ""}
        onChange={(event) => onChange(states.find((state) => state === event.currentTarget.value) ?? null)}
      >
        <option value="">All</option>
        {states.map((state) => (
          <option key={state} value={state}>
            {words[state]}
          </option>
        ))}
      </select>
    </label>
  );
}
