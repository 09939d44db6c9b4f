/**
 * Plays two soft tones. They are synthesised because an audio file needs a request, and the site's CSP may forbid it.
 */
async function play(): Promise<void> {
  const audio = new AudioContext();
  const gain = audio.createGain();
  gain.connect(audio.destination);
  gain.gain.setValueAtTime(0.0001, audio.currentTime);
  gain.gain.exponentialRampToValueAtTime(0.08, audio.currentTime + 0.02);
  gain.gain.exponentialRampToValueAtTime(0.0001, audio.currentTime + 0.5);
  [660, 880].forEach((frequency, i) => {
    const tone = audio.createOscillator();
    tone.frequency.value = frequency;
    tone.connect(gain);
    tone.start(audio.currentTime + i * 0.12);
    tone.stop(audio.currentTime + 0.5);
    tone.onended = () => i && void audio.close();
  });
  await pause(600);
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/**
 * Plays the chime once per message across tabs, and once for messages that arrive together. The first tab to get the
 * lock plays.
 */
export async function chime(key: string, id: string): Promise<void> {
  if (navigator.userActivation && !navigator.userActivation.hasBeenActive) return; // browsers block audio before the first user activation
  if (!navigator.locks) return play();
  const once = (name: string, act: () => Promise<unknown>) =>
    navigator.locks.request(name, { ifAvailable: true }, (lock) => (lock ? act() : undefined));
  await once(`${key}.${id}`, async () => {
    await once(`${key}.sound`, play);
    await pause(5_000); // holds the lock for tabs that receive the message late
  });
}
