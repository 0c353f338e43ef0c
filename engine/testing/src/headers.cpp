// Whether two types are one and the same to a call: numbers of one width and sign, pointers to what is alike.
// The rest of this program is written by `headers.rs`: what is included before, and one row for each function after.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

template <class Answer, class... Arguments>
using Function = Answer (*)(Arguments...);

template <class Ours, class Theirs>
constexpr bool agree();

template <class Ours, class Theirs>
struct Functions : std::false_type {};

template <class Ours, class... Given, class Theirs, class... Taken>
struct Functions<Ours(Given...), Theirs(Taken...)> {
    static constexpr bool all() {
        if constexpr (sizeof...(Given) == sizeof...(Taken)) {
            return agree<Ours, Theirs>() && (agree<Given, Taken>() && ...);
        } else {
            return false;
        }
    }
    static constexpr bool value = all();
};

template <class Ours, class Theirs>
constexpr bool alike() {
    if constexpr (std::is_function_v<Ours>) {
        return Functions<Ours, Theirs>::value;
    } else if constexpr (std::is_void_v<Ours>) {
        // One of the library's own objects, or a function that is always null: no number, and no pointer to a pointer.
        return !std::is_arithmetic_v<Theirs> && !std::is_pointer_v<Theirs>;
    } else {
        return std::is_void_v<Theirs> || agree<Ours, Theirs>();
    }
}

template <class Ours, class Theirs>
constexpr bool agree() {
    if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
        return alike<std::remove_cv_t<std::remove_pointer_t<Ours>>, std::remove_cv_t<std::remove_pointer_t<Theirs>>>();
    } else if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
        return sizeof(Ours) == sizeof(Theirs) && std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
    } else {
        return std::is_same_v<Ours, Theirs>;
    }
}

template <class Ours, class Theirs>
const char *types() {
    return __PRETTY_FUNCTION__;
}

// Each name is declared as a struct as well, which the function hides where the headers have one.
template <class Ours, class Struct>
void row(const char *name) {
    std::printf("undeclared %s\n", name);
}

template <class Ours, auto Theirs>
void row(const char *name) {
    if (agree<Ours, decltype(Theirs)>()) {
        std::printf("agrees %s\n", name);
    } else {
        std::printf("differs %s %s\n", name, types<Ours, decltype(Theirs)>());
    }
}
