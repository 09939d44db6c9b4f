import { useId } from 'preact/hooks';
import { parseHex, toHex } from '@parley/shared/colour.js';
import { text, type Data } from '@parley/shared/message.js';
import { strings } from '../strings.js';
import { IconButton } from '../ui/button.js';
import { shownColour, withKey, type ColourKey } from './draft.js';

const s = strings.applications;

/** A colour of the widget: a picker, its value as text, and a button for the default. */
export function Colour({
  name,
  configs,
  change,
  error,
}: {
  name: ColourKey;
  configs: Data;
  change(c: Data): void;
  error: string | undefined;
}) {
  const id = useId();
  const own = text(configs[name]);
  const shown = toHex(parseHex(shownColour(configs, name))!);
  const problem = own && !parseHex(own) ? s.colourWrong : error;
  return (
    <div class="colour">
      <label for={id}>{s.colourNames[name]}</label>
      <div class="colour-line">
        <input
          type="color"
          aria-label={s.pick(s.colourNames[name])}
          value={shown}
          onInput={(e) => change(withKey(configs, name, e.currentTarget.value))}
        />
        <input
          id={id}
          class="input mono"
          spellcheck={false}
          autoComplete="off"
          value={own}
          placeholder={shown}
          aria-invalid={problem ? true : undefined}
          aria-describedby={problem ? `${id}-error` : undefined}
          onInput={(e) => change(withKey(configs, name, e.currentTarget.value))}
        />
        {own && (
          <IconButton
            small
            icon="close"
            label={s.resetColour(s.colourNames[name])}
            onClick={() => change(withKey(configs, name, ''))}
          />
        )}
      </div>
      {problem && (
        <p class="error" id={`${id}-error`}>
          {problem}
        </p>
      )}
    </div>
  );
}
