import { Picture } from '@parley/shared/render/picture.js';
import { text } from '@parley/shared/message.js';
import { useScreen } from './context.js';

/** Avatar of the other side: the application's icon, or the initial of a name. */
export function Avatar({ name, class: more = '' }: { name: string; class?: string }) {
  const { state, host } = useScreen();
  const url = text(state.settings?.widgetConfigs.aiIconUrl);
  const letter = <span class="letter">{[...(name || '?')][0]!.toUpperCase()}</span>;
  return (
    <span class={`avatar ${more}`} aria-hidden="true">
      {url ? (
        <Picture url={url} base={host.base} origins={host.mediaOrigins} alt="" class="face" fallback={letter} />
      ) : (
        letter
      )}
    </span>
  );
}
