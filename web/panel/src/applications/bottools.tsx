/**
 * The part "Tools" of the bot's form: servers of tools, and what a language model may call of them. botdraft.ts has its
 * rules.
 */
import { useRef, useState } from 'preact/hooks';
import { connections as api } from '../api/api.js';
import { messageOf } from '../api/client.js';
import type { AllowedTool, Connection, ListedTool, ToolServer } from '../api/types.js';
import { count } from '../lib/format.js';
import type { Loaded } from '../lib/load.js';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Checkbox, Field, Select, TextArea, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Badge, Notice } from '../ui/states.js';
import { toast } from '../ui/toast.js';
import type { PartProps } from './botbounds.js';
import { newTool, type ToolChoice, toolChoices, withTool } from './botdraft.js';
import { ConnectionDialog, connectionOptions } from './connections.js';

const s = strings.bot.tools;

/** The API's maximum of servers, and of the characters of a button and of a question. */
const MAX_SERVERS = 5;
const MAX_LABEL = 100;
const MAX_QUESTION = 500;

/** What a server has answered to the question for its tools. */
interface Listing {
  busy?: boolean;
  /** In words: why there is no answer. */
  failure?: string | undefined;
  /** Absent: there is no answer. */
  tools?: ListedTool[];
}

interface ToolsProps extends PartProps {
  list: Loaded<Connection[]>;
  /** Called with a new connection. */
  put(c: Connection): void;
}

export function ToolsPart({ form, change, errors, list, put }: ToolsProps) {
  /** By connection. */
  const [listings, setListings] = useState<Record<string, Listing>>({});
  const addButton = useRef<HTMLButtonElement>(null);
  const servers = form.toolServers;
  const setServers = (toolServers: ToolServer[]) => change({ toolServers });
  const remove = (i: number) => {
    setServers(servers.toSpliced(i, 1));
    addButton.current!.focus();
  };
  const ask = async (id: string) => {
    const keep = (listing: Listing) => setListings((all) => ({ ...all, [id]: listing }));
    keep({ ...listings[id], busy: true });
    try {
      const { tools, failure } = await api.tools(id);
      keep(failure ? { failure } : { tools });
    } catch (err) {
      keep({ failure: messageOf(err) });
    }
  };
  return (
    <Card title={s.title} lead={s.lead}>
      {servers.map((server, i) => (
        <Server
          key={i}
          number={i + 1}
          server={server}
          list={list}
          taken={[form.connectionId, ...servers.map((x) => x.connectionId)]}
          listing={listings[server.connectionId] ?? {}}
          ask={() => void ask(server.connectionId)}
          errors={errors}
          path={`model.tools.servers[${i}]`}
          change={(next) => setServers(servers.with(i, next))}
          remove={() => remove(i)}
          put={put}
        />
      ))}
      {errors['model.tools.servers'] && <p class="error">{errors['model.tools.servers']}</p>}
      <div>
        <Button
          small
          icon="plus"
          buttonRef={addButton}
          disabled={servers.length >= MAX_SERVERS}
          onClick={() => setServers([...servers, { connectionId: '', tools: [] }])}
        >
          {s.add}
        </Button>
      </div>
      {servers.length > 0 && (
        <div class="form-grid">
          <Field label={s.agree} hint={s.agreeHint} optional error={errors['model.tools.agree']}>
            <TextInput value={form.agree} change={(agree) => change({ agree })} maxLength={MAX_LABEL} />
          </Field>
          <Field label={s.decline} hint={s.declineHint} optional error={errors['model.tools.decline']}>
            <TextInput value={form.decline} change={(decline) => change({ decline })} maxLength={MAX_LABEL} />
          </Field>
        </div>
      )}
    </Card>
  );
}

interface ServerProps {
  number: number;
  server: ToolServer;
  list: Loaded<Connection[]>;
  /** The connections that are chosen already: of the model, and of all servers. */
  taken: string[];
  listing: Listing;
  ask(): void;
  errors: Record<string, string>;
  /** Where the settings have the server. */
  path: string;
  change(next: ToolServer): void;
  remove(): void;
  put(c: Connection): void;
}

/** A server and its tools. Another connection begins without tools. */
function Server({ number, server, list, taken, listing, ask, errors, path, change, remove, put }: ServerProps) {
  const [adding, setAdding] = useState(false);
  const listButton = useRef<HTMLButtonElement>(null);
  const { connectionId, tools } = server;
  const name = list.data?.find((c) => c.id === connectionId)?.name ?? s.server(number);
  const choices = toolChoices(tools, listing.tools);
  const choose = (id: string) => change({ connectionId: id, tools: [] });
  const setTool = (choice: ToolChoice, tool?: AllowedTool) => {
    change({ connectionId, tools: withTool(tools, choice.index, tool) });
    if (!tool && !choice.listed) listButton.current!.focus(); // the tool disappears
  };
  return (
    <section class="tool-server" aria-label={name}>
      <div class="row-flex nowrap">
        <h3 class="grow-1 wrap-any">{name}</h3>
        <IconButton icon="trash" label={s.removeOne(name)} onClick={remove} />
      </div>
      <Field label={s.connection} hint={s.connectionHint} required error={errors[`${path}.connectionId`]}>
        <Select
          value={connectionId}
          change={choose}
          options={connectionOptions(list, connectionId).filter(
            ({ value }) => value === connectionId || !taken.includes(value) || !value,
          )}
        />
      </Field>
      <div class="row-flex">
        {connectionId ? (
          <Button small icon="refresh" buttonRef={listButton} busy={!!listing.busy} onClick={ask}>
            {s.list}
          </Button>
        ) : (
          <Button small icon="plus" onClick={() => setAdding(true)}>
            {strings.bot.connections.create}
          </Button>
        )}
        <span class="muted" role="status">
          {listing.busy ? s.listing : listing.tools && found(listing.tools.length)}
        </span>
      </div>
      {listing.failure && <Notice kind="bad">{listing.failure}</Notice>}
      {errors[`${path}.tools`] && <p class="error">{errors[`${path}.tools`]}</p>}
      {choices.length > 0 && (
        <ul aria-label={s.all}>
          {choices.map((choice) => (
            <Tool
              key={choice.name}
              choice={choice}
              gone={!!listing.tools && !choice.listed}
              errors={errors}
              path={`${path}.tools[${choice.index}]`}
              set={(tool) => setTool(choice, tool)}
            />
          ))}
        </ul>
      )}
      {adding && (
        <ConnectionDialog
          close={() => setAdding(false)}
          saved={(c) => {
            put(c);
            choose(c.id);
            toast(strings.bot.connections.created);
          }}
        />
      )}
    </section>
  );
}

const found = (n: number): string => (n ? count(n, s.forms) : s.none);

interface ToolProps {
  choice: ToolChoice;
  /** Whether the server has answered, and no longer has the tool. */
  gone: boolean;
  errors: Record<string, string>;
  path: string;
  /** Sets what is allowed of the tool; undefined: nothing. */
  set(tool?: AllowedTool): void;
}

function Tool({ choice, gone, errors, path, set }: ToolProps) {
  const { name, listed, allowed } = choice;
  const label = (
    <span class="row-flex">
      <code class="wrap-any">{name}</code>
      {listed?.readOnly && <Badge>{s.readOnly}</Badge>}
      {gone && <Badge kind="warn">{s.gone}</Badge>}
    </span>
  );
  return (
    <li>
      <Checkbox
        label={label}
        hint={gone ? s.goneHint : listed?.description}
        error={errors[`${path}.name`]}
        checked={!!allowed}
        change={(on) => set(on ? newTool(choice) : undefined)}
      />
      {allowed && (
        <div class="tool-settings" role="group" aria-label={name}>
          <Field class="narrow" label={s.effect} hint={s.effectHints[allowed.effect]} error={errors[`${path}.effect`]}>
            <Select
              value={allowed.effect}
              change={(effect) => set({ ...allowed, effect: effect as AllowedTool['effect'] })}
              options={EFFECTS.map((value) => ({ value, label: s.effects[value] }))}
            />
          </Field>
          {allowed.effect === 'changes' && (
            <Field label={s.question} hint={s.questionHint} required error={errors[`${path}.question`]}>
              <TextArea
                rows={2}
                spellcheck
                maxLength={MAX_QUESTION}
                placeholder={s.questionExample}
                value={allowed.question ?? ''}
                change={(question) => set({ ...allowed, question })}
              />
            </Field>
          )}
        </div>
      )}
    </li>
  );
}

const EFFECTS: AllowedTool['effect'][] = ['reads', 'changes'];
