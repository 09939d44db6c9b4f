import { useEffect, useState } from 'preact/hooks';
import { applications as api } from '../api/api.js';
import { fieldErrors, messageOf } from '../api/client.js';
import { live } from '../api/live.js';
import type { Application, Day, Hours, Interval, RatingSum, Support } from '../api/types.js';
import { useLoad } from '../lib/load.js';
import { strings } from '../strings.js';
import { Button, IconButton } from '../ui/button.js';
import { Checkbox, Field, TextInput } from '../ui/field.js';
import { Card } from '../ui/page.js';
import { Badge, Notice } from '../ui/states.js';
import { toast } from '../ui/toast.js';

const s = strings.support;

const DAYS: Day[] = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];

const workday: Interval[] = [{ from: '09:00', to: '17:00' }];

/** Monday to Friday, 9:00 to 17:00, in the browser's time zone. */
const defaultHours = (): Hours => ({
  timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  week: Object.fromEntries(DAYS.slice(0, 5).map((d) => [d, workday])),
  dates: [],
});

/** The agent settings of an application. They are saved separately from its other settings. */
export function SupportTab({
  app: a,
  put,
  writable,
}: {
  app: Application;
  put(a: Application): void;
  writable: boolean;
}) {
  const [draft, setDraft] = useState<Support>(a.support);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const errors = fieldErrors(problem);
  const dirty = JSON.stringify(draft) !== JSON.stringify(a.support);
  const change = (c: Partial<Support>) => writable && setDraft({ ...draft, ...c });
  const hours = draft.hours;
  const setHours = (c: Partial<Hours>) => hours && change({ hours: { ...hours, ...c } });
  const save = async () => {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const saved = await api.support(a.id, draft);
      put(saved);
      setDraft(saved.support);
      toast(s.saved);
    } catch (err) {
      setProblem(err);
    } finally {
      setBusy(false);
    }
  };
  const others = Object.entries(errors).filter(([name]) => !hasField(name, hours));
  return (
    <>
      <Card title={s.agents} lead={s.agentsLead}>
        <Checkbox
          label={s.handoverButton}
          hint={s.handoverButtonHint}
          disabled={!writable}
          checked={draft.handoverButton}
          change={(handoverButton) => change({ handoverButton })}
        />
        <Checkbox
          label={s.agentsOnly}
          hint={s.agentsOnlyHint}
          disabled={!writable}
          checked={draft.agentsOnly}
          change={(agentsOnly) => change({ agentsOnly })}
        />
        <Checkbox
          label={s.rating}
          hint={s.ratingHint}
          disabled={!writable}
          checked={draft.rating}
          change={(rating) => change({ rating })}
        />
        <RatingSummary appId={a.id} />
      </Card>
      <Card title={s.hours} lead={s.hoursLead}>
        <Checkbox
          label={s.limited}
          hint={s.limitedHint}
          disabled={!writable}
          checked={!!hours}
          change={(on) => change({ hours: on ? defaultHours() : undefined })}
        />
        {hours && (
          <>
            <Field label={s.timeZone} hint={s.timeZoneHint} error={errors['hours.timeZone']}>
              <TextInput
                value={hours.timeZone}
                list="zones"
                disabled={!writable}
                change={(timeZone) => setHours({ timeZone })}
              />
            </Field>
            <datalist id="zones">
              {Intl.supportedValuesOf('timeZone').map((z) => (
                <option key={z} value={z} />
              ))}
            </datalist>
            <ul class="days" aria-label={s.week}>
              {DAYS.map((day) => (
                <li key={day}>
                  <span class="day-name">{s.days[day]}</span>
                  <Intervals
                    name={s.days[day]}
                    path={`hours.week.${day}`}
                    errors={errors}
                    writable={writable}
                    value={hours.week?.[day] ?? []}
                    change={(all) => setHours({ week: withoutClosedDays({ ...hours.week, [day]: all }) })}
                  />
                </li>
              ))}
            </ul>
            <h3>{s.dates}</h3>
            <p class="muted">{s.datesLead}</p>
            {!!hours.dates?.length && (
              <ul class="days" aria-label={s.dates}>
                {hours.dates.map((d, i) => {
                  const set = (c: Partial<typeof d>) =>
                    setHours({ dates: hours.dates!.map((old, j) => (j === i ? { ...old, ...c } : old)) });
                  return (
                    <li key={i}>
                      <Field hidden label={s.date(i + 1)} error={errors[`hours.dates[${i}].date`]}>
                        <TextInput
                          type="date"
                          class="short"
                          disabled={!writable}
                          value={d.date}
                          change={(date) => set({ date })}
                        />
                      </Field>
                      <Intervals
                        name={d.date || s.date(i + 1)}
                        path={`hours.dates[${i}].intervals`}
                        errors={errors}
                        writable={writable}
                        value={d.intervals}
                        change={(intervals) => set({ intervals })}
                      />
                      {writable && (
                        <IconButton
                          icon="trash"
                          label={s.removeDate(d.date || String(i + 1))}
                          onClick={() => setHours({ dates: hours.dates!.filter((_, j) => j !== i) })}
                        />
                      )}
                    </li>
                  );
                })}
              </ul>
            )}
            {writable && (
              <div>
                <Button
                  small
                  icon="plus"
                  onClick={() => setHours({ dates: [...(hours.dates ?? []), { date: '', intervals: [] }] })}
                >
                  {s.addDate}
                </Button>
              </div>
            )}
          </>
        )}
      </Card>
      {!!problem && !Object.keys(errors).length && <Notice kind="bad">{messageOf(problem)}</Notice>}
      {others.length > 0 && <Notice kind="bad">{others.map(([name, text]) => `${name} ${text}`).join('; ')}</Notice>}
      {dirty && writable && (
        <div class="save-bar" role="region" aria-label={strings.applications.unsaved}>
          <p>{strings.applications.unsaved}</p>
          <Button
            onClick={() => {
              setDraft(a.support);
              setProblem(undefined);
            }}
          >
            {strings.applications.discard}
          </Button>
          <Button kind="primary" busy={busy} onClick={() => void save()}>
            {strings.save}
          </Button>
        </div>
      )}
    </>
  );
}

/** Whether an input field shows the error with this path. */
const hasField = (name: string, hours: Hours | undefined): boolean =>
  !!hours && /^hours\.(timeZone|week\.\w+\[|dates\[\d+\]\.(date|intervals\[))/.test(name);

/** Removes the days without intervals from a week. */
const withoutClosedDays = (week: Partial<Record<Day, Interval[]>>): Partial<Record<Day, Interval[]>> =>
  Object.fromEntries(Object.entries(week).filter(([, all]) => all.length));

interface IntervalsProps {
  name: string;
  path: string;
  errors: Record<string, string>;
  writable: boolean;
  value: Interval[];
  change(all: Interval[]): void;
}

function Intervals({ name, path, errors, writable, value, change }: IntervalsProps) {
  const set = (i: number, c: Partial<Interval>) => change(value.map((old, j) => (j === i ? { ...old, ...c } : old)));
  return (
    <div class="intervals">
      {!value.length && <span class="faint">{s.closed}</span>}
      {value.map((v, i) => {
        const error = errors[`${path}[${i}].from`] ?? errors[`${path}[${i}].to`];
        return (
          <span key={i} class="interval">
            <input
              type="time"
              class="input"
              aria-label={s.from(name, i + 1)}
              disabled={!writable}
              aria-invalid={error ? true : undefined}
              value={v.from}
              onInput={(e) => set(i, { from: e.currentTarget.value })}
            />
            <span aria-hidden="true">–</span>
            <input
              type="time"
              class="input"
              aria-label={s.to(name, i + 1)}
              disabled={!writable}
              aria-invalid={error ? true : undefined}
              value={v.to === '24:00' ? '00:00' : v.to}
              onInput={(e) => set(i, { to: e.currentTarget.value === '00:00' ? '24:00' : e.currentTarget.value })}
            />
            {v.to < v.from && v.to !== '' && <small class="faint">{s.nextDay}</small>}
            {writable && (
              <IconButton
                small
                icon="close"
                label={s.removeInterval(name, i + 1)}
                onClick={() => change(value.filter((_, j) => j !== i))}
              />
            )}
            {error && <span class="error">{error}</span>}
          </span>
        );
      })}
      {writable && value.length < 10 && (
        <IconButton small icon="plus" label={s.addInterval(name)} onClick={() => change([...value, workday[0]!])} />
      )}
    </div>
  );
}

/** The average rating of an application in the last days. */
function RatingSummary({ appId }: { appId: string }) {
  const data = useRatings();
  const own = data?.ratings.find((r) => r.appId === appId);
  if (!data) return null;
  return (
    <p class="muted">
      {own ? (
        <>
          <Average ratings={own} /> {s.ratedIn(data.days, own.count)}
        </>
      ) : (
        s.noRatings(data.days)
      )}
    </p>
  );
}

/** The delay between a rating event and the reload, in milliseconds: the rating is stored after its event is published. */
const RELOAD_DELAY = 1_000;

/** Loads the ratings of all applications, and reloads them after each new rating. */
export function useRatings() {
  const { data, reload } = useLoad((signal) => api.ratings(signal), []);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = live.on('rated', () => {
      clearTimeout(timer);
      timer = setTimeout(reload, RELOAD_DELAY);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return data;
}

/** The average rating of an application, as a badge. */
export function Average({ ratings: r }: { ratings: RatingSum }) {
  return (
    <Badge kind={r.average >= 4 ? 'good' : r.average >= 3 ? 'plain' : 'warn'}>{s.average(r.average, r.count)}</Badge>
  );
}
