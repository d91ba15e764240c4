#pragma once

namespace CLI {
class App;
}

namespace limber {

// Help that says what an option is for, and nothing about how it is parsed. After all commands have been
// added.
void use_plain_help(CLI::App& app);

}  // namespace limber
