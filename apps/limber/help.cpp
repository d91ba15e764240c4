// What the command says about itself: help without noise, and the manual page and the shells' completion, all
// from the one table of options.
#include "help.hpp"

#include "commands.hpp"
#include "gallery.hpp"

#include <limber/core/build_info.hpp>
#include <limber/scene/spec.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>

namespace limber {
namespace {

// "INT" and "FLOAT" become N and X; what excludes what is said where it happens.
std::string value_name(const CLI::Option& option) {
  if (option.get_type_size() == 0 || option.get_items_expected_max() == 0) return "";
  std::string name = option.get_type_name();
  if (const std::size_t colon = name.find(':'); colon != std::string::npos) name.resize(colon);
  if (name == "INT" || name == "UINT") return "N";
  if (name == "FLOAT") return "X";
  if (name.empty()) return "TEXT";
  return name;
}

class PlainFormatter final : public CLI::Formatter {
 public:
  // "--no-legend{false}" is how the library is told, not what people type.
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    for (std::size_t open; (open = name.find('{')) != std::string::npos;) {
      const std::size_t close = name.find('}', open);
      if (close == std::string::npos) break;
      name.erase(open, close + 1 - open);
    }
    return name;
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string value = value_name(*option);
    std::string out = value.empty() ? "" : " " + value;
    if (option->get_expected_max() > 1) out += " ...";
    if (!option->get_default_str().empty()) out += fmt::format(" = {}", option->get_default_str());
    return out;
  }
};

// Sub-commands of `app`, and theirs, with their full names.
std::vector<std::pair<std::string, const CLI::App*>> all_commands(const CLI::App& app,
                                                                  const std::string& prefix) {
  std::vector<std::pair<std::string, const CLI::App*>> out;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    if (sub->get_group().empty()) continue;
    out.emplace_back(prefix + sub->get_name(), sub);
    for (auto& inner : all_commands(*sub, prefix + sub->get_name() + " ")) out.push_back(std::move(inner));
  }
  return out;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& name : o->get_snames()) out.push_back("-" + name);
    for (const std::string& name : o->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

// Those that an option or argument may have, where they are a list: "TEXT:{obj,ply}".
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  const std::size_t open = name.find(":{"), close = name.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return split_words(std::string_view(name).substr(open + 2, close - open - 2), ',');
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : " ") + w;
  return out;
}

// What troff would take for a command or a hyphen of its own.
std::string troff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'' && out.empty())
      out += "\\(aq";
    else if (c == '.' && out.empty())
      out += "\\&.";
    else
      out += c;
  }
  return out;
}

void manual_options(const CLI::App& app, std::string& out) {
  for (const CLI::Option* o : app.get_options()) {
    std::string names;
    for (const std::string& name : o->get_snames()) names += (names.empty() ? "" : ", ") + ("-" + name);
    for (const std::string& name : o->get_lnames()) names += (names.empty() ? "" : ", ") + ("--" + name);
    if (names == "-h, --help") continue;
    const std::string value = value_name(*o);
    out += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", troff(names.empty() ? o->get_name() : names),
                       value.empty() || names.empty() ? "" : " \\fI" + troff(value) + "\\fR",
                       troff(o->get_description()));
  }
}

std::string manual(const CLI::App& app) {
  std::string out = fmt::format(
      ".TH LIMBER 1 \"\" \"limber {}\" \"User Commands\"\n.SH NAME\nlimber \\- {}\n.SH SYNOPSIS\n.B limber\n"
      ".I COMMAND\n[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{}\n",
      troff(version()), "soft bodies with far fewer unknowns than their meshes have",
      troff(app.get_description()));
  out += ".SH COMMANDS\n";
  for (const auto& [name, command] : all_commands(app, "")) {
    out += fmt::format(".SS limber {}\n{}\n", troff(name), troff(command->get_description()));
    manual_options(*command, out);
  }
  out += fmt::format(".SH EXIT STATUS\n{}\n", troff(app.get_footer()));
  out +=
      ".SH FILES\n.TP\n.I ~/.cache/limber\nWhat methods prepare once. \\fBXDG_CACHE_HOME\\fR moves it.\n"
      ".SH ENVIRONMENT\n.TP\n.B LIMBER_KERNELS\nInstruction set of the kernels (base, avx2, avx512) in place "
      "of the "
      "machine\\(aqs best.\n";
  return out;
}

std::string bash_completion(const CLI::App& app) {
  std::string cases, values;
  std::vector<std::string> top;
  for (const CLI::App* sub : app.get_subcommands(nullptr))
    if (!sub->get_group().empty()) top.push_back(sub->get_name());
  for (const auto& [name, command] : all_commands(app, "")) {
    std::vector<std::string> words = flags_of(*command);
    for (const CLI::App* sub : command->get_subcommands(nullptr)) words.push_back(sub->get_name());
    for (const CLI::Option* o : command->get_options()) {
      const std::vector<std::string> known = values_of(*o);
      if (known.empty()) continue;
      if (o->get_positional()) words.insert(words.end(), known.begin(), known.end());
      std::vector<std::string> names;
      for (const std::string& n : o->get_snames()) names.push_back(fmt::format("'{},-{}'", name, n));
      for (const std::string& n : o->get_lnames()) names.push_back(fmt::format("'{},--{}'", name, n));
      if (!names.empty())
        values += fmt::format("    {}) words='{}' ;;\n", fmt::join(names, "|"), joined_words(known));
    }
    cases += fmt::format("    '{}') words='{}' ;;\n", name, joined_words(words));
  }
  return fmt::format(
      "# bash completion for limber:  source <(limber completion bash)\n"
      "_limber() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} command='' words='{} --help --version' word k "
      "last=$COMP_CWORD\n"
      "  for ((k = 1; k < COMP_CWORD; ++k)); do\n"
      "    word=${{COMP_WORDS[k]}}\n"
      "    case $word in -*) ;; *) if [[ -z $command ]]; then command=$word; elif [[ $command == mesh ]]; "
      "then "
      "command=\"mesh $word\"; fi ;; esac\n"
      "  done\n"
      "  case $command in\n"
      "    '') ;;\n"
      "{}"
      "    *) words='' ;;\n"
      "  esac\n"
      "  case $command,$cur in\n"
      "    run,[!-]*|run,|live,[!-]*|live,|check,[!-]*|check,|info,[!-]*|info,|train,[!-]*|train,)\n"
      "      words=\"$(limber list scene-names 2>/dev/null)\" ;;\n"
      "  esac\n"
      "  [[ $cur == '=' ]] && cur='' || ((--last))\n"  // "--format=vtu" comes as three words
      "  [[ ${{COMP_WORDS[last]}} == '=' ]] && ((--last))\n"
      "  case $command,${{COMP_WORDS[last]}} in\n"
      "{}"
      "  esac\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
      "}}\n"
      "complete -o default -F _limber limber\n",
      joined_words(top), cases, values);
}

std::string zsh_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string zsh_completion(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    if (sub->get_group().empty()) continue;
    commands += fmt::format("    '{}:{}'\n", sub->get_name(), zsh_quoted(sub->get_description()));
    std::string options;
    for (const CLI::Option* o : sub->get_options()) {
      const std::string value = value_name(*o), known = joined_words(values_of(*o));
      const std::string tail = value.empty() ? ""
                                             : fmt::format(":{}:{}", zsh_quoted(value),
                                                           known.empty() ? "_files" : "(" + known + ")");
      if (o->get_positional() && !known.empty()) options += fmt::format(" \\\n        '1{}'", tail);
      for (const std::string& name : o->get_snames())
        options += fmt::format(" \\\n        '-{}[{}]{}'", name, zsh_quoted(o->get_description()), tail);
      for (const std::string& name : o->get_lnames())
        options += fmt::format(" \\\n        '--{}[{}]{}'", name, zsh_quoted(o->get_description()), tail);
    }
    cases += fmt::format("      {}) _arguments{} \\\n        '*:file:_files' ;;\n", sub->get_name(), options);
  }
  return fmt::format(
      "#compdef limber\n# zsh completion for limber: put it as _limber into a folder of $fpath\n"
      "_limber() {{\n  local -a commands\n  commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n    _describe 'command' commands\n  else\n    local command=$words[2]\n"
      "    (( CURRENT-- ))\n    shift words\n    case $command in\n{}    esac\n  fi\n}}\n_limber \"$@\"\n",
      commands, cases);
}

}  // namespace

void use_plain_help(CLI::App& app) {
  const auto formatter = std::make_shared<PlainFormatter>();
  formatter->column_width(26);
  app.formatter(formatter);
  for (CLI::App* sub : app.get_subcommands(nullptr)) {
    sub->formatter(formatter);
    sub->footer("");
    for (CLI::App* inner : sub->get_subcommands(nullptr)) {
      inner->formatter(formatter);
      inner->footer("");
    }
  }
}

void add_completion_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("completion", "Print what bash or zsh complete commands with");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([&app, &action, shell] {
    action = [&app, shell] {
      fmt::print("{}", *shell == "bash" ? bash_completion(app) : zsh_completion(app));
      return 0;
    };
  });
}

void add_man_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page: limber man | man -l -");
  command->callback([&app, &action] {
    action = [&app] {
      fmt::print("{}", manual(app));
      return 0;
    };
  });
}

}  // namespace limber
