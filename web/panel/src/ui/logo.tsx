export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="9" />
      <path d="M16 7.5c-5.2 0-9.5 3.4-9.5 7.7 0 2.5 1.5 4.7 3.8 6.1-.1 1.2-.6 2.2-1.4 3-.3.3-.1.8.3.8 2-.1 3.7-.8 5-1.9.6.1 1.2.1 1.8.1 5.2 0 9.5-3.5 9.5-8.1S21.2 7.5 16 7.5Z" />
    </svg>
  );
}
