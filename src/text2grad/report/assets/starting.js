initLive();
