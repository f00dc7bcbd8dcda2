import { useCallback, useEffect, useState } from "preact/hooks";
import { Badges } from "./badges/badges.tsx";
import { Deliveries } from "./deliveries.tsx";
import { Invitations } from "./invitations/invitations.tsx";
import { Overview } from "./overview/overview.tsx";
import { useSession } from "./parts/hooks.ts";
import { type Notice, NoticeContext } from "./parts/notice.tsx";
import { explain } from "./parts/problems.ts";

const VIEWS = [
  { name: "overview", title: "Overview", View: Overview },
  { name: "badges", title: "Badges", View: Badges },
  { name: "invitations", title: "Invitations", View: Invitations },
  { name: "deliveries", title: "Deliveries", View: Deliveries },
] as const;

/** The view that the address names. The address holds nothing else. */
const viewOf = (hash: string) => VIEWS.find(({ name }) => hash === `#${name}`) ?? VIEWS[0];

/** What a signed-in person sees: the application's name, the views, and what has just been done. */
export function Workplace() {
  const session = useSession();
  const [view, setView] = useState(() => viewOf(location.hash));
  const [notice, setNotice] = useState<Notice | null>(null);
  const [serial, setSerial] = useState(0);
  const notify = useCallback((next: Notice) => {
    setNotice(next);
    setSerial((before) => before + 1);
  }, []);
  useEffect(() => {
    const onChange = () => {
      setView(viewOf(location.hash));
      setNotice(null);
    };
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  const { name, applicationId } = session.application;
  const { View } = view;
  return (
    <NoticeContext.Provider value={notify}>
      <section class="application-bar" aria-label="Application">
        <p>
          <strong>{name}</strong> <span class="application-id">{applicationId}</span>
        </p>
        <button type="button" onClick={() => session.end("signed-out")}>
          Sign out
        </button>
      </section>
      <nav class="views" aria-label="Views">
        {VIEWS.map((each) => (
          <a key={each.name} href={`#${each.name}`} aria-current={each === view ? "page" : undefined}>
            {each.title}
          </a>
        ))}
      </nav>
      <main>
        <div role="status" class="notice-place">
          {notice !== null && <NoticeBar key={serial} notice={notice} onClose={() => setNotice(null)} />}
        </div>
        <View />
      </main>
    </NoticeContext.Provider>
  );
}

function NoticeBar({ notice, onClose }: { notice: Notice; onClose: () => void }) {
  const [text, setText] = useState(notice.text);
  const [canUndo, setCanUndo] = useState(notice.undo !== undefined);
  const undo = async () => {
    setCanUndo(false);
    try {
      await notice.undo?.();
      setText("Undone.");
    } catch (error) {
      setText(explain(error));
    }
  };
  return (
    <div class="notice">
      <p class="notice-text">{text}</p>
      {canUndo && (
        <button type="button" onClick={undo}>
          Undo
        </button>
      )}
      <button type="button" aria-label="Close message" onClick={onClose}>
        ✕
      </button>
    </div>
  );
}
