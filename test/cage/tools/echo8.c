/* The plainest tool in C: writes the request frame to 8, says nothing more, prints what comes back. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **arguments) {
  char buffer[65536];
  int request = open("/run/chio/request.frame", O_RDONLY);
  ssize_t length = read(request, buffer, sizeof buffer);
  if (write(8, buffer, (size_t)length) != length) return 3;
  if (count > 1 && strcmp(arguments[1], "half-close") == 0 && shutdown(8, SHUT_WR) != 0) return 4;
  while ((length = read(8, buffer, sizeof buffer)) > 0) {
    if (write(1, buffer, (size_t)length) != length) return 5;
  }
  return length == 0 ? 0 : 6;
}
