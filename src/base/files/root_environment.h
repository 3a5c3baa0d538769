// Root's environment may be another user's (su and sudo keep much of it): its variables then
// lead root, and the libraries that read them, to places where that user decides.
#pragma once

#include <string>

namespace heapprofd {

// True if the directory belongs to this process's user, and only root and this user can
// alter it, what lies in it, or where its path leads.
bool IsOwnAlone(const std::string& directory);

// Removes from this process's environment, as root, the variables by which libraries find
// a user's files (HOME, XDG_*_HOME, TERMINFO and their like), where they name no directory
// of root's alone. Only for processes that start no program of the user's.
void ForgetForeignPlaces();

// Root's home directory by /etc/passwd; /root if that does not say.
std::string RootsHome();

// The variable PATH; "" if there is none. As root without the directories that other users
// can alter: programs that the user has not asked for by name are looked up in the rest.
std::string TrustedPath();

}  // namespace heapprofd
