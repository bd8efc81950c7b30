# Fails unless the page holds the example, word for word:  cmake -DPAGE= -DEXAMPLE= -P FILE
file(READ ${PAGE} page)
file(READ ${EXAMPLE} example)
string(FIND "${page}" "${example}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${PAGE} does not show ${EXAMPLE} as it is; copy it there")
endif()
