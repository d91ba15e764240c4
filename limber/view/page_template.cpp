// web/dist/page.html inside the program, so that a page can be written from anywhere.
#include <limber/view/page_template.hpp>

__asm__(
    ".pushsection .rodata\n"
    ".global limber_page_begin\n"
    ".global limber_page_end\n"
    "limber_page_begin:\n"
    ".incbin \"" LIMBER_PAGE_TEMPLATE
    "\"\n"
    "limber_page_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" const char limber_page_begin[], limber_page_end[];

namespace limber::view {

std::string_view page_template() {
  return {limber_page_begin, static_cast<std::size_t>(limber_page_end - limber_page_begin)};
}

}  // namespace limber::view
