/** Two soft tones. They are made here: a file would be one more request, and a policy may forbid it. */
export async function chime(name: string): Promise<void> {
  if (navigator.userActivation && !navigator.userActivation.hasBeenActive) return; // browsers would refuse
  const play = async () => {
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
    await new Promise((done) => setTimeout(done, 600));
  };
  // Of several tabs, the first one plays.
  if (!navigator.locks) return play();
  await navigator.locks.request(`${name}.sound`, { ifAvailable: true }, (lock) => (lock ? play() : undefined));
}
