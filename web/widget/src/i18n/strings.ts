/** A text by plural category. Every language has `other`. */
export type Plural = { other: string } & Partial<Record<'zero' | 'one' | 'two' | 'few' | 'many', string>>;

type PluralKey =
  'unread' | 'formErrors' | 'charactersLeft' | 'filesReady' | 'newMessages' | 'cards' | 'stars';

type TextKey =
  | 'open' | 'close' | 'chatWith' | 'menu' | 'soundOn' | 'soundOff' | 'forget' | 'forgetConfirm' | 'forgetYes' | 'cancel'
  | 'loading' | 'loadFailed' | 'tryAgain'
  | 'online' | 'agentsOnline' | 'reconnecting' | 'offline' | 'unavailable' | 'slowDown' | 'sessionEnded' | 'notAllowed' | 'storageBlocked'
  | 'formTitle' | 'formIntro' | 'firstName' | 'lastName' | 'email' | 'phone' | 'userId' | 'optional' | 'start' | 'starting'
  | 'fieldRequired' | 'emailInvalid' | 'phoneInvalid'
  | 'messageLabel' | 'placeholder' | 'captionPlaceholder' | 'send' | 'attach' | 'camera' | 'dropHere' | 'tooLong'
  | 'fileLimit' | 'fileTooBig' | 'fileEmpty' | 'removeFile'
  | 'messages' | 'you' | 'saidBy' | 'typing' | 'sending' | 'waiting' | 'sent' | 'seen' | 'failed' | 'retry' | 'discard' | 'stopWriting'
  | 'uploading' | 'cancelUpload' | 'toNewest' | 'loadingOlder' | 'olderFailed' | 'chatStart' | 'empty' | 'choose' | 'chosen'
  | 'cardOf' | 'previousCard' | 'nextCard' | 'picture' | 'video' | 'audio' | 'file' | 'openPicture' | 'play' | 'download'
  | 'talkToPerson' | 'handover' | 'away' | 'awayUntil' | 'leaveMessage' | 'offlineSent' | 'chatClosed' | 'rateTitle' | 'rateComment' | 'rateThanks' | 'rateChange' | 'rateSkip'
  | 'newTab' | 'fromHost' | 'call' | 'closePreview' | 'unsupported' | 'cut' | 'titleUnread';

/** All texts of one language. A language file with a missing or an unknown key does not compile. */
export type Strings = Record<TextKey, string> & Record<PluralKey, Plural>;
