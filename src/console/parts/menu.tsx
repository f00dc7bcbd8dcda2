import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

interface MenuItem {
  label: string;
  isFinal?: boolean | undefined;
  onChoose: () => void;
}

/**
 * The actions of a row, in a menu that one quiet button opens. The browser puts it on top of the page, and closes it on Escape
 * and on a click elsewhere.
 */
export function Menu({
  of,
  items,
}: {
  /** What the actions are for, for the menu's label. */ of: string;
  items: readonly MenuItem[];
}) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const place = () => {
    const at = button.current?.getBoundingClientRect();
    const { current } = list;
    if (at === undefined || current === null) return;
    const { offsetWidth: width, offsetHeight: height } = current;
    const isRoomBelow = at.bottom + height + 8 < innerHeight;
    current.style.top = `${isRoomBelow ? at.bottom + 4 : Math.max(8, at.top - height - 4)}px`;
    current.style.left = `${Math.max(8, at.right - width)}px`;
  };
  // Keeps the menu at its row when the page scrolls or is resized.
  const [isOpen, setOpen] = useState(false);
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    addEventListener("resize", place);
    addEventListener("scroll", place, true);
    return () => {
      removeEventListener("resize", place);
      removeEventListener("scroll", place, true);
    };
  }, [isOpen]);
  // Not in an effect: closing and opening at once is one event, whose old and new state are both "open".
  const toggled = ({ newState }: Pick<ToggleEvent, "newState">) => {
    setOpen(newState === "open");
    if (newState !== "open") return;
    place();
    list.current?.querySelector("button")?.focus();
  };
  const choose = ({ onChoose }: MenuItem) => {
    list.current?.hidePopover();
    onChoose();
  };
  const move = (event: KeyboardEvent) => {
    const buttons = [...(list.current?.querySelectorAll("button") ?? [])];
    const now = buttons.findIndex((button) => button.matches(":focus"));
    const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab") list.current?.hidePopover();
    if (next === undefined) return;
    event.preventDefault();
    buttons.at(next % buttons.length)?.focus();
  };
  if (items.length === 0) return null;
  return (
    <>
      <button
        ref={button}
        type="button"
        class="menu-button"
        popovertarget={id}
        aria-haspopup="menu"
        aria-label={`Actions: ${of}`}
      >
        ⋯
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        aria-label={`Actions: ${of}`}
        class="menu"
        tabIndex={-1}
        onToggle={toggled}
        onKeyDown={move}
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            class={item.isFinal ? "final" : undefined}
            onClick={() => choose(item)}
          >
            {item.label}
          </button>
        ))}
      </div>
    </>
  );
}
